"""The canonical form that a server gives to definitions: generated names, defaults, index order."""
