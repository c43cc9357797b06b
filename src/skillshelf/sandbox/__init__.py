"""Run scripts of skills in a sandbox."""
