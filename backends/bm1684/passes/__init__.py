"""Passes that serve this chip alone: integers of bytes that become what they mean by a table."""
