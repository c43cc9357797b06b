"""The server of a team: people, a database, and the skills that they share."""
