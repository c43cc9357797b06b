"""Values, limits, text, file access, environment, console and JSON types."""
