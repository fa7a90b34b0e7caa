"""Builders of the papers' models. Component builders take sizes; presets take nothing or D."""
