"""What `generate_acp_schema.py` is made of: tables, the reading of JSON Schema, the writing of Python."""
