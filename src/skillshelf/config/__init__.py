"""Profiles, hosts and settings: what a system does, as data."""
