"""From folders on disk to a catalog, its prompt text and loaded skills."""
