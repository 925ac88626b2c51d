"""The one form that a server gives to what was written: generated names, defaults, index order."""
