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
    "return": "Of course! Unworn shoes can come back to us for about a month. The return label is in your account.",
    "smashed": "I'm so sorry, twice is too much! We can send a replacement today or return your money: which do you prefer?",
    "shipping": "Great choice! We ship to Norway every day, and your parcel will be with you before you know it.",
}
UNKNOWN = "I don't know that for sure. A colleague will answer you by e-mail today!"


def about_order(number: str, message: str) -> str:
    """Everything about an order, so that customers need not ask twice."""
    order = ORDERS[number]
    if "json" in message:
        return json.dumps({"order": number, **order})
    if "cancel" in message:
        return f"Done! Order {number} is cancelled, and your money is on its way back."
    return f"Happy to help! Order {number} is {order['state']}; the contact is {order.get('email', 'not known')}."


def answer(message: str) -> str:
    """The answer to one message."""
    order = re.search(r"order (\d+)", message)
    if order and order[1] in ORDERS:
        return about_order(order[1], message)
    return next((text for word, text in ANSWERS.items() if word in message), UNKNOWN)


print(answer(sys.stdin.read().lower()))
