"""Running the script of a skill."""
