"""Families of single elements: functions of one tensor and of several, integers, conversions."""
