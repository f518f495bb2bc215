"""Snapshots of the disk of a box, and what is made of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import chain
from typing import TYPE_CHECKING, Any

from . import _check
from ._calls import call
from ._documents import Change, Snapshot
from ._library import library
from ._part import BoxPart
from ._support import SandboxError
from .options import CloneOptions, clone_document

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .box import Box
    from .runtime import Runtime


class BoxSnapshots(BoxPart):
    """What a box does with its disk as a whole, whether it runs or not."""

    _runtime: Runtime

    def snapshot(self, name: str | None = None) -> Snapshot:
        """Makes an image of the disk as it is now. name must be free; without one it is made up.

        A box that runs stands still while its disk is copied; paused_ms says for how long. Raises
        AlreadyExistsError (the name), UnsupportedError (a box of rootfs_path), ResourceExhaustedError (too
        many layers), TimeoutError (the copy takes over a minute: stop the box first).
        """
        return Snapshot.parse(self._document("box_snapshot", _check.optional("name", name)))

    def clone(
        self,
        n: int = 1,
        *,
        name_prefix: str | None = None,
        snapshot: str | None = None,
        **options: Unpack[CloneOptions],
    ) -> list[Box]:
        """Makes boxes that are like this one, with the files of a snapshot of it, or with those that it has now.

        The names are name_prefix with -1, -2 and so on behind it; else they have none. CloneOptions is what
        is otherwise; ports of the host are chosen anew. If one can't be made, none is. Raises NotFoundError (one
        has ended already and is gone; the others are removed).
        """
        document = clone_document(n, name_prefix, snapshot, options)
        with self._second() as pointer:
            made = call(lambda: library().json("box_clone", pointer, document), self._discard)
        try:
            return [self._runtime.get(box["id"]) for box in made]
        except BaseException:  # an interrupt, too
            self._discard(made)
            raise

    def _discard(self, made: list[dict[str, Any]]) -> None:
        """Removes clones whose maker was interrupted, or that are not all there."""
        for box in made:
            with suppress(SandboxError):  # the others are removed all the same
                self._runtime.remove(box["id"], force=True)

    def rollback(self, snapshot: str) -> None:
        """Gives the box the disk of a snapshot of it. The commands of one that is up end, and it is started again."""
        reference = _check.text("snapshot", snapshot)
        with self._second() as pointer:
            call(lambda: library().call("box_rollback", pointer, reference))

    def diff(self, since: str | None = None) -> Iterator[Change]:
        """What has changed on the disk since the box was made, or since a snapshot of it, in the order of the paths.

        A directory that was removed is one change; of a new one each file is. Changes are asked for when they
        are needed, up to 10,000 at once: the first one raises what is wrong.
        """
        return chain.from_iterable(self.diff_pages(since))

    def diff_pages(self, since: str | None) -> Iterator[tuple[Change, ...]]:
        """The same, page by page."""
        snapshot, token = _check.optional("since", since), None
        while True:
            page = self._document("box_diff", snapshot, 0, token)
            yield tuple(map(Change.parse, page["changes"]))
            if page["next_page_token"] is None:
                return
            token = page["next_page_token"].encode()
