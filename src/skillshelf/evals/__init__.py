"""Test whether skills are found: by search alone, on what hosts show, and with a model."""
