"""Predict what each agent host sees, explain why, and make skills visible to it."""
