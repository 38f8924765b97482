def get_assert(output: str, context: object) -> bool:
    return len(output) > 3
