"""Prompts: what a model is told. Pure: values in, text or values out."""
