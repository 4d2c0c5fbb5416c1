from slugify import slugify


def slug(text: str) -> str:
    """The text as part of a URL."""
    return slugify(text)
