"""Plays rollouts written as data: ``model`` reads them, ``play`` plays, ``ending`` judges.

``python -m tests.e2e.runner FOLDER`` plays every scenario of a folder.
"""
