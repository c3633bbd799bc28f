"""Faces: how a session is seen and answered. Each is shown the same events; none can do what another cannot."""
