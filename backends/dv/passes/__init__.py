"""Passes that serve this chip alone: tables of weights, and what a run does not round."""
