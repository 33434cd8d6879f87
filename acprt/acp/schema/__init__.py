"""The ACP wire schema: generated payload classes per version, and how they are decoded and routed."""
