"""The tool of the example."""


def count_words(text: str) -> dict:
    """Counts the words of a text."""
    return {"status": "success", "count": len(text.split())}
