"""Agents, a folder each, and what they share: layers, settings, how a policy is stored."""
