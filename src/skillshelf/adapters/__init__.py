"""Adapters of sessions for agent frameworks, one thin module each, imported only when used."""
