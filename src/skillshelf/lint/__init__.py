"""Checking, fixing and creating skills."""
