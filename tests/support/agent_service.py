"""The program of an agent behind an HTTP service: its argument is the port, and the prompt says what
it does."""

SERVICE = """
import json, os, subprocess, sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

class Agent(BaseHTTPRequestHandler):
    checks = 0

    def do_GET(self):
        Agent.checks += 1
        self.answer(200 if Agent.checks > 2 else 503, "")

    def do_POST(self):
        prompt = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["prompt"]
        word, _, rest = prompt.partition(" ")
        if word == "log":
            print(rest, file=sys.stderr, flush=True)
        if word == "exit":
            print("out of order", file=sys.stderr, flush=True)
            os._exit(int(rest))
        facts = {
            "pid": os.getpid(),
            "checks": Agent.checks,
            "child": child.pid,
            "folder": os.getcwd(),
            "variable": os.environ.get(rest),
        }
        status = int(rest) if word == "status" else 200
        self.answer(status, str(facts[word]) if word in facts else f"{GREETING} {prompt}")

    def answer(self, status, text):
        self.send_response(status)
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_arguments):
        pass

GREETING = "Hello"
child = subprocess.Popen(["sleep", "600"])
ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Agent).serve_forever()
"""
