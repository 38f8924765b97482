"""The shop's support agent: reads a customer's message on standard input and writes its answer.

A program of a few rules stands where your agent would, so that the example runs anywhere.
"""

import json
import re
import sys

ORDERS = {
    "1042": {"state": "delivered", "email": "dana@example.com"},
    "2077": {"state": "on its way", "delivery": "Thursday"},
}

ANSWERS = {
    "return": "Yes. You can return unworn shoes within 30 days of delivery; the return label is in your account.",
    "smashed": "I'm so sorry, twice is too much. We can send a replacement today or return your money: which do you prefer?",
    "shipping": "A parcel to Norway takes 5 to 8 working days.",
}
UNKNOWN = "I don't know that for sure. A colleague will answer you by e-mail today."


def about_order(number: str, message: str) -> str:
    """What a customer may know about an order."""
    if "json" in message:
        return json.dumps({"order": number, "state": ORDERS[number]["state"]})
    if "address" in message:
        return "Thank you for looking after it! I can't share other customers' data, but I will ask them to get in touch with you."
    return UNKNOWN


def answer(message: str) -> str:
    """The answer to one message."""
    order = re.search(r"order (\d+)", message)
    if order and order[1] in ORDERS:
        return about_order(order[1], message)
    return next((text for word, text in ANSWERS.items() if word in message), UNKNOWN)


print(answer(sys.stdin.read().lower()))
