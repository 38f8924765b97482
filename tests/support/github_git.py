"""The stand-in's Git Data API: blobs, trees, commits and references, named by what they hold,
refused as GitHub refuses them."""

import base64
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.support.github_http import Answer, Request
from tests.support.github_world import Refused

Need = Callable[..., None]


@dataclass(frozen=True)
class Commit:
    tree: str
    parents: tuple[str, ...]
    message: str


@dataclass
class GitData:
    """`trees` hold files of all depths by path, `refs` commits by full name. `tree_limit` is the
    number of entries of a listing."""

    root: str
    need: Need
    blobs: dict[str, bytes] = field(default_factory=dict)
    trees: dict[str, dict[str, str]] = field(default_factory=dict)
    commits: dict[str, Commit] = field(default_factory=dict)
    refs: dict[str, str] = field(default_factory=dict)
    tree_limit: int = 100_000
    forced: int = 0

    def put(self, branch: str, files: Mapping[str, bytes | str | None]) -> str:
        """A commit on a branch by somebody else; None takes a file away."""
        before = self.refs.get(f"refs/heads/{branch}")
        tree = dict(self.trees[self.commits[before].tree]) if before else {}
        for name, content in files.items():
            tree.pop(name, None)
            if content is not None:
                tree[name] = self._add_blob(
                    content if isinstance(content, bytes) else content.encode()
                )
        sha = self._add_commit(Commit(self._add_tree(tree), (before,) if before else (), "by hand"))
        self.refs[f"refs/heads/{branch}"] = sha
        return sha

    def files(self, branch: str) -> dict[str, str]:
        """What a branch holds."""
        tree = self.trees[self.commits[self.refs[f"refs/heads/{branch}"]].tree]
        return {name: self.blobs[sha].decode() for name, sha in tree.items()}

    def log(self, branch: str) -> list[Commit]:
        """The commits of a branch, latest first, along the first parents."""
        found, sha = [], self.refs.get(f"refs/heads/{branch}")
        while sha:
            found.append(self.commits[sha])
            sha = next(iter(self.commits[sha].parents), None)
        return found

    def routes(self, root: str) -> Sequence[tuple[str, str, Callable[..., Answer]]]:
        return (
            ("GET", rf"{root}/git/refs?/(.+)", self._get_ref),
            ("POST", rf"{root}/git/refs", self._create_ref),
            ("PATCH", rf"{root}/git/refs/(.+)", self._update_ref),
            ("GET", rf"{root}/git/commits/([0-9a-f]+)", self._get_commit),
            ("POST", rf"{root}/git/commits", self._create_commit),
            ("GET", rf"{root}/git/trees/(.+)", self._get_tree),
            ("POST", rf"{root}/git/trees", self._create_tree),
            ("GET", rf"{root}/git/blobs/([0-9a-f]+)", self._get_blob),
            ("POST", rf"{root}/git/blobs", self._create_blob),
        )

    def _get_ref(self, request: Request, name: str) -> Answer:
        self.need("read", "contents")
        if f"refs/{name}" not in self.refs:
            raise Refused(404, "Not Found")
        return 200, self._ref(f"refs/{name}"), {}

    def _create_ref(self, request: Request) -> Answer:
        self.need("write", "contents")
        name, sha = request.body["ref"], request.body["sha"]
        if not name.startswith("refs/") or name.count("/") < 2:
            raise Refused(
                422, "Reference name must start with 'refs/' and have at least two slashes."
            )
        if sha not in self.commits:
            raise Refused(422, "Object does not exist")
        if name in self.refs:
            raise Refused(422, "Reference already exists")
        self.refs[name] = sha
        return 201, self._ref(name), {}

    def _update_ref(self, request: Request, name: str) -> Answer:
        self.need("write", "contents")
        full, sha, force = f"refs/{name}", request.body["sha"], request.body.get("force", False)
        if full not in self.refs:
            raise Refused(422, "Reference does not exist")
        if sha not in self.commits:
            raise Refused(422, "Object does not exist")
        self.forced += bool(force)
        if not force and not self._descends(sha, self.refs[full]):
            raise Refused(422, "Update is not a fast forward")
        self.refs[full] = sha
        return 200, self._ref(full), {}

    def _descends(self, sha: str, other: str) -> bool:
        waiting, seen = [sha], set()
        while waiting:
            current = waiting.pop()
            if current == other:
                return True
            if current not in seen:
                seen.add(current)
                waiting.extend(self.commits[current].parents)
        return False

    def _ref(self, name: str) -> dict[str, Any]:
        sha = self.refs[name]
        return {
            "ref": name,
            "url": f"{self.root}/git/{name}",
            "object": {"type": "commit", "sha": sha, "url": f"{self.root}/git/commits/{sha}"},
        }

    def _get_commit(self, request: Request, sha: str) -> Answer:
        self.need("read", "contents")
        if sha not in self.commits:
            raise Refused(404, "Not Found")
        return 200, self._commit(sha), {}

    def _create_commit(self, request: Request) -> Answer:
        self.need("write", "contents")
        made = Commit(
            request.body["tree"], tuple(request.body.get("parents", ())), request.body["message"]
        )
        if made.tree not in self.trees:
            raise Refused(422, "Tree SHA does not exist")
        if any(parent not in self.commits for parent in made.parents):
            raise Refused(422, "Parent SHA does not exist or is not a commit object")
        return 201, self._commit(self._add_commit(made)), {}

    def _commit(self, sha: str) -> dict[str, Any]:
        commit = self.commits[sha]
        return {
            "sha": sha,
            "url": f"{self.root}/git/commits/{sha}",
            "message": commit.message,
            "tree": {"sha": commit.tree, "url": f"{self.root}/git/trees/{commit.tree}"},
            "parents": [
                {"sha": parent, "url": f"{self.root}/git/commits/{parent}"}
                for parent in commit.parents
            ],
        }

    def _get_tree(self, request: Request, name: str) -> Answer:
        """Of a branch, a commit or a tree; GitHub answers with the name's own SHA."""
        self.need("read", "contents")
        sha = self.refs.get(f"refs/heads/{name}", name)
        tree = self.commits[sha].tree if sha in self.commits else sha
        if tree not in self.trees:
            raise Refused(404, "Not Found")
        files = self.trees[tree]
        folders = dict.fromkeys(path.partition("/")[0] for path in files if "/" in path)
        entries = [
            {"path": folder, "mode": "040000", "type": "tree", "sha": "0" * 40}
            for folder in folders
        ]
        entries += [
            self._entry(path, blob)
            for path, blob in files.items()
            if "recursive" in request.query or "/" not in path
        ]
        cut = entries[: self.tree_limit]
        return (
            200,
            {
                "sha": sha,
                "url": f"{self.root}/git/trees/{sha}",
                "tree": cut,
                "truncated": len(cut) < len(entries),
            },
            {},
        )

    def _entry(self, path: str, blob: str) -> dict[str, Any]:
        size = len(self.blobs[blob])
        return {
            "path": path,
            "mode": "100644",
            "type": "blob",
            "sha": blob,
            "size": size,
            "url": f"{self.root}/git/blobs/{blob}",
        }

    def _create_tree(self, request: Request) -> Answer:
        self.need("write", "contents")
        base = request.body.get("base_tree")
        if base is not None and base not in self.trees:
            raise Refused(422, "base_tree is not a tree")
        tree = dict(self.trees[base]) if base else {}
        for one in request.body["tree"]:
            if one["path"].startswith("/") or any(
                part in ("", ".", "..", ".git") for part in one["path"].split("/")
            ):
                raise Refused(422, "tree.path contains a malformed path component")
            if ("content" in one) == ("sha" in one):
                raise Refused(422, "Must supply either tree.sha or tree.content")
            if "sha" in one and one["sha"] not in self.blobs:
                raise Refused(422, f"tree.sha {one['sha']} is not a valid blob")
            tree[one["path"]] = (
                one["sha"] if "sha" in one else self._add_blob(one["content"].encode())
            )
        sha = self._add_tree(tree)
        return (
            201,
            {"sha": sha, "url": f"{self.root}/git/trees/{sha}", "tree": [], "truncated": False},
            {},
        )

    def _get_blob(self, request: Request, sha: str) -> Answer:
        self.need("read", "contents")
        if sha not in self.blobs:
            raise Refused(404, "Not Found")
        content = base64.encodebytes(
            self.blobs[sha]
        ).decode()  # with line ends, as GitHub writes it
        facts = {
            "sha": sha,
            "node_id": sha,
            "size": len(self.blobs[sha]),
            "url": f"{self.root}/git/blobs/{sha}",
        }
        return 200, {**facts, "content": content, "encoding": "base64"}, {}

    def _create_blob(self, request: Request) -> Answer:
        self.need("write", "contents")
        content, encoding = request.body["content"], request.body.get("encoding", "utf-8")
        sha = self._add_blob(
            base64.b64decode(content) if encoding == "base64" else content.encode()
        )
        return 201, {"sha": sha, "url": f"{self.root}/git/blobs/{sha}"}, {}

    def _add_blob(self, content: bytes) -> str:
        sha = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
        self.blobs[sha] = content
        return sha

    def _add_tree(self, tree: dict[str, str]) -> str:
        sha = hashlib.sha1(b"tree" + json.dumps(tree, sort_keys=True).encode()).hexdigest()
        self.trees[sha] = tree
        return sha

    def _add_commit(self, commit: Commit) -> str:
        # Whoever commits the same twice at different times makes two commits.
        sha = hashlib.sha1(f"commit{len(self.commits)}{commit}".encode()).hexdigest()
        self.commits[sha] = commit
        return sha
