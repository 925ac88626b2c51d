"""The answers of ``/api`` as values, and the OpenAPI document that describes them. Pure."""
