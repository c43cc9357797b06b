"""The terminal picker."""
