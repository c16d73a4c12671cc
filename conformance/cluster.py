"""Sells from one stock through three nodes of a MariaDB Galera cluster, and kills one of them halfway.

    python conformance/cluster.py [--orders 300] [--sellers 6] [--keep]

Starts the cluster itself, in a folder of its own and on free ports of this machine: it wants mariadbd, galera-4 and
rsync. Every second order has a key and is sent by two sellers, each to another node. In the end nothing may be lost or
doubled, the stock may never have been below zero, numbers have no gaps, all nodes hold the same rows, and the journal
run again on SQLite gives them too. Exit code 1 if anything is not so. `--keep` leaves the nodes running.
"""

from __future__ import annotations

import argparse
import contextlib
import getpass
import json
import multiprocessing
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pymysql
from click import echo

import com

USER = "mysql" if os.geteuid() == 0 else getpass.getuser()
"""Who runs the servers: not root, whose rsync gives its rights up."""
PROVIDERS = ("/usr/lib/galera/libgalera_smm.so", "/usr/lib64/galera-4/libgalera_smm.so")
SHOP = """
create table fruits (
  fruit_id int primary key generated always as identity,
  fruit_name text not null unique,
  stock int not null check (stock >= 0)
);
create table sales (
  sale_id int primary key generated always as identity,
  fruit_id int not null references fruits (fruit_id),
  buyer text not null
);
"""
STOCK = """
program put_up(name text, qty int);
step put: insert into fruits (fruit_name, stock) values ($name, $qty);
"""
SELL = """
program sell(name text, buyer text);

step fruit -> one: select fruit_id, stock from fruits where fruit_name = $name;
assert $fruit.stock > 0 else 'No {$name} is left.';
step take -> one: update fruits set stock = $fruit.stock - 1 where fruit_id = $fruit.fruit_id;
step sale: insert into sales (fruit_id, buyer) values ($fruit.fruit_id, $buyer) returning sale_id;

return $sale.sale_id as sale;
"""
SOLD_OUT = "CM501"
RESENT = ("CM516", "CM519")
"""What a client answers by sending its order again: the memory was busy, or lost."""


def free_ports(count: int) -> list[int]:
    """Ports of this machine that nobody listens on."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for found in sockets:
            found.bind(("127.0.0.1", 0))
        return [found.getsockname()[1] for found in sockets]


class Node:
    """A server of the cluster."""

    def __init__(self, folder: Path, name: str, provider: str) -> None:
        self.folder = folder / name
        self.name = name
        self.provider = provider
        self.port, self.group, self.transfer, self.state = free_ports(4)
        self.process: subprocess.Popen[bytes] | None = None

    def install(self) -> None:
        """Makes the server's own tables."""
        self.folder.mkdir()
        shutil.chown(self.folder, USER)
        made = [
            "mariadb-install-db",
            "--no-defaults",
            f"--datadir={self.folder / 'data'}",
            f"--user={USER}",
            "--auth-root-authentication-method=normal",
            "--skip-test-db",
        ]
        subprocess.run(made, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def start(self, nodes: list[Node], first: bool = False) -> None:
        """Starts the server; it joins the others unless it is the first."""
        options = f"gmcast.listen_addr=tcp://127.0.0.1:{self.group};base_port={self.group}"
        options += f";ist.recv_addr=127.0.0.1:{self.transfer};gcache.size=32M"
        others = ",".join(f"127.0.0.1:{node.group}" for node in nodes)
        command = [
            shutil.which("mariadbd") or "/usr/sbin/mariadbd",
            "--no-defaults",
            f"--user={USER}",
            f"--datadir={self.folder / 'data'}",
            f"--port={self.port}",
            "--bind-address=127.0.0.1",
            f"--socket={self.folder / 'socket'}",
            f"--pid-file={self.folder / 'pid'}",
            f"--log-error={self.folder / 'log.err'}",
            "--binlog-format=ROW",
            "--innodb-autoinc-lock-mode=2",
            "--innodb-buffer-pool-size=64M",
            "--wsrep-on=ON",
            f"--wsrep-provider={self.provider}",
            f"--wsrep-provider-options={options}",
            "--wsrep-cluster-name=com",
            f"--wsrep-cluster-address=gcomm://{others}",
            f"--wsrep-node-name={self.name}",
            f"--wsrep-node-address=127.0.0.1:{self.group}",
            "--wsrep-sst-method=rsync",
            f"--wsrep-sst-receive-address=127.0.0.1:{self.state}",
        ]
        command += ["--wsrep-new-cluster"] if first else []
        self.process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )

    def ask(self, sql: str) -> Any:
        """The rows of a statement."""
        given: Any = {"host": "127.0.0.1", "port": self.port, "user": "root", "autocommit": True}
        with pymysql.connect(**given) as server, server.cursor() as cursor:
            cursor.execute(sql)
            return cursor.fetchall()

    def wait(self, size: int, seconds: float = 90) -> None:
        """Waits until the node is one of so many and takes statements."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if self.process is None or self.process.poll() is not None:
                break
            with contextlib.suppress(pymysql.Error, OSError):
                rows = self.ask("show status where variable_name in ('wsrep_ready', 'wsrep_cluster_size')")
                if dict(rows) == {"wsrep_ready": "ON", "wsrep_cluster_size": str(size)}:
                    return
            time.sleep(0.1)
        log = self.folder / "log.err"
        said = log.read_text(errors="replace").splitlines()[-15:] if log.exists() else []
        raise SystemExit("\n".join([f"{self.name} did not come up:", *said]))

    def kill(self) -> None:
        """Kills the server, and what it has started, as a power cut would."""
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            self.process = None


class Cluster:
    """Three nodes in a folder of their own."""

    def __init__(self, keep: bool) -> None:
        provider = next((p for p in PROVIDERS if Path(p).exists()), None)
        missing = [name for name in ("mariadb-install-db", "rsync") if shutil.which(name) is None]
        if provider is None or missing:
            raise SystemExit("it wants mariadb-server, galera-4 and rsync: apt install mariadb-server galera-4 rsync")
        self.keep = keep
        self.folder = Path(tempfile.mkdtemp(prefix="com-cluster-"))
        self.folder.chmod(0o755)
        self.nodes = [Node(self.folder, f"node{n}", provider) for n in (1, 2, 3)]

    def __enter__(self) -> Self:
        try:
            for place, node in enumerate(self.nodes):
                node.install()
                node.start(self.nodes, first=place == 0)
                node.wait(place + 1)
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self.keep and kind is None:
            for node in self.nodes:
                echo(f"{node.name} runs on port {node.port}, its files are in {node.folder}")
        else:
            self._end()

    def _end(self) -> None:
        for node in self.nodes:
            node.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def url(self, place: int) -> str:
        """The memory, beginning with one of the nodes."""
        nodes = self.nodes[place:] + self.nodes[:place]
        hosts = ",".join("127.0.0.1" for _ in nodes)
        return f"mysql://root@/shop?host={hosts}&port={','.join(str(node.port) for node in nodes)}"


def sell(url: str, place: int, sellers: int, orders: int, done: Any, told: Any) -> None:
    """Sends a seller's orders: those with keys are sent by the next seller too."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sales, sold_out, resent = [], 0, 0
    with com.connect(url, timeout=30) as memory:
        program = com.compile(SELL, memory.schema, engine="mysql")
        for order in range(orders):
            key = f"order {order}" if order % 2 else None
            if (order // 2 + place) % sellers not in ((0, 1) if key else (0,)):
                continue
            while True:
                try:
                    outcome = memory.execute(program, {"name": "apple", "buyer": f"buyer {order}"}, key=key)
                    sales.append((order, outcome.rows[0][0]))
                    break
                except com.RunError as failed:
                    code = failed.message.code
                    if code == SOLD_OUT:
                        sold_out += 1
                        break
                    if code not in RESENT or (key is None and "may have" in str(failed)):
                        raise
                    resent += 1
            with done.get_lock():
                done.value += 1
    told.put((sales, sold_out, resent))


class Report:
    """Says line by line what was shown."""

    def __init__(self) -> None:
        self.failed = 0

    def __call__(self, holds: bool, said: str) -> None:
        self.failed += not holds
        echo(f"{'ok    ' if holds else 'FAILED'}  {said}")


def trade(cluster: Cluster, sellers: int, orders: int, report: Report) -> tuple[list[tuple[int, int]], float]:
    """Lets the sellers sell, and kills a node halfway; the sales they were told, and the seconds it took."""
    spawn = multiprocessing.get_context("spawn")
    done, told = spawn.Value("i", 0), spawn.Queue()
    processes = [
        spawn.Process(target=sell, args=(cluster.url(place % 3), place, sellers, orders, done, told), daemon=True)
        for place in range(sellers)
    ]
    begin = time.monotonic()
    for process in processes:
        process.start()
    sent = orders + orders // 2
    answers: list[Any] = []
    victim = cluster.nodes[1]
    while done.value < sent // 2 and all(p.exitcode in (None, 0) for p in processes):
        time.sleep(0.005)
    victim.kill()
    report(0 < done.value < sent, f"{victim.name} was killed with -9 after {done.value} of {sent} orders sent")
    while len(answers) < len(processes) and all(p.exitcode in (None, 0) for p in processes):
        with contextlib.suppress(Exception):
            answers.append(told.get(timeout=0.2))
    for process in processes:
        process.join(5)
        process.kill()
    seconds = time.monotonic() - begin
    ended = [p.exitcode for p in processes]
    report(len(answers) == sellers and set(ended) == {0}, f"{len(answers)} of {sellers} sellers sent all orders")
    sales = [sale for found, _, _ in answers for sale in found]
    refused, resent = (sum(a[i] for a in answers) for i in (1, 2))
    report(len(sales) + refused == sent, f"{len(sales)} orders were answered with a sale, {refused} with sold out")
    echo(f"        {seconds:.1f} s, {sent / seconds:.0f} orders/s; {resent} sent again by the sellers")
    return sales, seconds


def stocks(memory: com.Memory) -> Iterator[int]:
    """The stock after each commit, as the row images have it."""
    changes = "select run, \"after\" from com_change where tbl = 'fruits'"
    for (after,) in memory.link.ask(
        f'select h."after" from com_commit c join ({changes}) h on h.run = c.run order by c.number'
    ):
        yield json.loads(after)["stock"]


def look(cluster: Cluster, sales: list[tuple[int, int]], stock: int, report: Report) -> None:
    """Looks at what is there, through the nodes that are left."""
    with com.connect(cluster.url(0)) as memory:
        ask, log = memory.link.ask, memory.log()
        rows = ask("select sale_id, buyer from sales order by sale_id")
        ids = [sale for sale, _ in rows]
        report(ids == list(range(1, stock + 1)), f"{len(ids)} sales of {stock} apples, their ids without gaps")
        buyers = {buyer for _, buyer in rows}
        report(len(buyers) == len(rows), f"{len(buyers)} buyers: no order was sold twice")
        answered = {(f"buyer {order}", sale) for order, sale in sales}
        same = answered == {(buyer, sale) for sale, buyer in rows}
        report(same, f"{len(answered)} orders were answered, each with the sale that is there, whoever sent it")
        left = list(stocks(memory))
        report(left == list(range(stock, -1, -1)), f"the stock went from {left[0]} to {left[-1]}, one by one")
        runs = [row.run for row in log]
        report(runs == list(range(1, len(runs) + 1)), f"{len(runs)} runs, their numbers without gaps")
        commits = [number for (number,) in ask("select number from com_commit order by number")]
        report(commits == list(range(1, stock + 2)), f"{len(commits)} commits, their numbers without gaps")
        flaws = memory.verify()
        report(not flaws, "the chain of commits holds" + "".join(f"; {flaw.detail}" for flaw in flaws[:3]))
        again = [row.attempt for row in log]
        tried = sum(1 for n in again if n)
        echo(f"        {tried} runs were tried more than once, {sum(again)} tries more in all, {max(again)} at most")
        rebuilt = memory.replay_all(into=f"sqlite:///{cluster.folder}/again.db")
        wanted, got = rebuilt.wanted[:12], rebuilt.digest[:12]
        report(rebuilt.same, f"{rebuilt.runs} runs done again on SQLite give memory hash {got}, here {wanted}")


def hashes(cluster: Cluster) -> list[str]:
    """The memory hash of each node that runs, with that of its journal's head."""
    made = []
    for node in cluster.nodes:
        if node.process is not None:
            with com.connect(f"mysql://root@127.0.0.1:{node.port}/shop") as memory:
                head = memory.link.ask("select run, commits, hash from com_head")[0]
                made.append(f"{memory.digest()[:12]} {head}")
    return made


def ended(number: int, frame: Any) -> None:
    raise SystemExit(128 + number)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--orders", type=int, default=300)
    parser.add_argument("--sellers", type=int, default=6)
    parser.add_argument("--keep", action="store_true", help="leave the nodes running")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, ended)
    report = Report()
    stock = arguments.orders * 4 // 5
    begin = time.monotonic()
    with Cluster(arguments.keep) as cluster:
        version = cluster.nodes[0].ask("select version()")[0][0]
        report(True, f"three nodes of MariaDB {version} came up in {time.monotonic() - begin:.1f} s")
        cluster.nodes[0].ask("create database shop character set utf8mb4")
        with com.create(cluster.url(0), com.read_schema(SHOP)) as memory:
            put_up = com.compile(STOCK, memory.schema, engine="mysql")
            com.execute(put_up, memory, name="apple", qty=stock)
        report(len(set(hashes(cluster))) == 1, "the memory made through node1 is the same on all nodes")
        sales, _ = trade(cluster, arguments.sellers, arguments.orders, report)
        look(cluster, sales, stock, report)
        found = hashes(cluster)
        report(len(found) == 2 and len(set(found)) == 1, f"the two nodes that are left hold the same: {found[0]}")
        begin = time.monotonic()
        cluster.nodes[1].start(cluster.nodes)
        for node in cluster.nodes:
            node.wait(3)
        found = hashes(cluster)
        back = f"node2 came back after {time.monotonic() - begin:.1f} s"
        report(len(found) == 3 and len(set(found)) == 1, f"{back} and holds the same")
    sys.exit(1 if report.failed else 0)


if __name__ == "__main__":
    main()
