"""The screen of `sharecore top`."""

from __future__ import annotations

from typing import ClassVar

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import DataTable, Footer, Input, Static

from sharecore.admin.watch import Look, Watch
from sharecore.cli.top.rows import (
    GROUP_COLUMNS,
    PARTITION_COLUMNS,
    Cell,
    arranged,
    fitted,
    group_rows,
    partition_rows,
    shown,
)
from sharecore.errors import KafkaError
from sharecore.plural import counted

_LAG = GROUP_COLUMNS.index("LAG")
_REASONS_MAX = 5
"""Lines that say why records wait."""


class Top(App[None]):
    """Groups, and the partitions and members of one of them.

    Args:
        watch: looks at the cluster.
        address: of the cluster, to be shown.
        interval_s: between two looks.
    """

    TITLE = "sharecore top"
    CSS = """
    DataTable { height: 1fr; }
    #head, #members { height: auto; padding: 0 1; }
    Input { display: none; }
    """
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "open", "Partitions", show=True),
        Binding("escape", "back", "Back"),
        Binding("s", "sort", "Sort by next column"),
        Binding("r", "reverse", "Reverse"),
        Binding("slash", "filter", "Filter"),
        Binding("q", "quit", "Quit"),
        # Textual only says how to quit
        Binding("ctrl+c", "quit", show=False, priority=True),
    ]

    def __init__(self, watch: Watch, address: str, interval_s: float) -> None:
        super().__init__()
        self._watch = watch
        self._address = address
        self._interval_s = interval_s
        self._now: Look | None = None
        self._before: Look | None = None
        self._trouble = ""
        self._group = ""
        self._reasons: list[str] = []
        self._column, self._descending = _LAG, True
        self._wanted = ""

    def compose(self) -> ComposeResult:
        """Head, members, table, filter, keys."""
        yield Static(id="head")
        yield Static(id="members")
        yield DataTable[str](cursor_type="row")
        yield Input(placeholder="name contains ...")
        yield Footer()

    def on_mount(self) -> None:
        """Begins to look."""
        self.query_one(DataTable).focus()
        self.set_interval(self._interval_s, self._look)
        self.call_later(self._look)

    def on_resize(self) -> None:
        """Fits the table to the terminal."""
        self._show()

    async def _look(self) -> None:
        try:
            look = await self._watch.look()
        except (KafkaError, OSError) as error:
            self._trouble = str(error)
        else:
            self._trouble = ""
            self._before, self._now = self._now, look
        self._show()
        if not self._trouble:
            await self._ask_why()

    async def _ask_why(self) -> None:
        """Asks why the records of the open group wait."""
        group = self._now.groups.get(self._group) if self._now else None
        try:
            self._reasons = await self._watch.why(group) if group else []
        except (KafkaError, OSError) as error:
            self._trouble = str(error)
        self._show()

    def _show(self) -> None:
        table = self.query_one(DataTable)
        columns = PARTITION_COLUMNS if self._group else GROUP_COLUMNS
        rows: list[tuple[Cell, ...]] = []
        if self._now is not None:
            if self._group:
                rows = partition_rows(self._group, self._now, self._before)
            else:
                rows = group_rows(self._now, self._before)
        rows = arranged(rows, self._column, descending=self._descending, wanted=self._wanted)
        cursor = self._selected(table)
        table.clear(columns=True)
        arrow = " ▼" if self._descending else " ▲"
        headings = [
            column + (arrow if number == self._column else "") for number, column in enumerate(columns)
        ]
        cells = [[*map(shown, row)] for row in rows]
        headings, cells = fitted(headings, cells, self.size.width, 2 * table.cell_padding)
        for heading, column in zip(headings, columns, strict=True):
            table.add_column(heading, key=column)
        for row, texts in zip(rows, cells, strict=True):
            table.add_row(*texts, key=str(row[0]))
        names = [str(row[0]) for row in rows]
        if cursor in names:
            table.move_cursor(row=names.index(cursor))
        self.query_one("#head", Static).update(self._head())
        self.query_one("#members", Static).update(self._members())

    def _head(self) -> str:
        groups = self._now.groups if self._now else {}
        what = f"group {self._group}" if self._group else counted(len(groups), "share group")
        text = f"{self._address}   {what}   every {self._interval_s:g} s"
        if self._wanted:
            text += f"   filter: {self._wanted}"
        return text + (f"\n{self._trouble}" if self._trouble else "")

    def _members(self) -> str:
        group = self._now.groups.get(self._group) if self._now and self._group else None
        if group is None:
            return "this group is gone" if self._group and self._now else ""
        members = ", ".join(f"{client_id or '?'} at {host}" for client_id, host in sorted(group.members))
        more = len(self._reasons) - _REASONS_MAX
        reasons = [*self._reasons[:_REASONS_MAX], *([f"and {more} more"] if more > 0 else [])]
        return "\n".join([f"members: {members or 'none'}", *reasons])

    def _selected(self, table: DataTable[object]) -> str:
        if not table.row_count:
            return ""
        return str(table.coordinate_to_cell_key(table.cursor_coordinate).row_key.value)

    def _change_view(self, group: str, column: int) -> None:
        self._group, self._column, self._descending, self._wanted = group, column, True, ""
        self._reasons = []
        self.call_later(self._ask_why)
        self.query_one(Input).value = ""
        self._show()

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        """Enter on a group opens it."""
        if not self._group and event.row_key.value is not None:
            self._change_view(event.row_key.value, PARTITION_COLUMNS.index("LAG"))

    def action_open(self) -> None:
        """Open the group under the cursor."""
        name = self._selected(self.query_one(DataTable))
        if name and not self._group:
            self._change_view(name, PARTITION_COLUMNS.index("LAG"))

    async def action_back(self) -> None:
        """Leaves the filter, or the group."""
        entry = self.query_one(Input)
        if entry.display:
            entry.value, self._wanted = "", ""
            self._close_filter()
        elif self._group:
            self._change_view("", _LAG)

    def action_sort(self) -> None:
        """Sorts by the next column."""
        self._column = (self._column + 1) % len(PARTITION_COLUMNS if self._group else GROUP_COLUMNS)
        self._show()

    def action_reverse(self) -> None:
        """Turn the order round."""
        self._descending = not self._descending
        self._show()

    def action_filter(self) -> None:
        """Ask for a part of the names to show."""
        entry = self.query_one(Input)
        entry.display = True
        # at once, so that the next keys go there
        self.screen.set_focus(entry)

    def on_input_changed(self, event: Input.Changed) -> None:
        """Filter while it is typed."""
        self._wanted = event.value
        self._show()

    def on_input_submitted(self) -> None:
        """Apply the filter."""
        self._close_filter()

    def _close_filter(self) -> None:
        self.query_one(Input).display = False
        self.query_one(DataTable).focus()
        self._show()
