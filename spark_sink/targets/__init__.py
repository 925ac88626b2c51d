"""Kinds of target: how to connect, write and look a schema up."""
