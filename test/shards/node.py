"""A ClickHouse server made of libchdb: HTTP and its own protocol on loopback, until it is killed.

    node.py LIBRARY CONFIG DIRECTORY HTTP_PORT TCP_PORT
"""

import ctypes
import sys

library, config, directory, http, tcp = sys.argv[1:]
query = ctypes.CDLL(library).chdb_query_cmdline
query.restype = ctypes.c_void_p
# The server listens for as long as the statement runs that has told it to.
statements = """SYSTEM START LISTEN HTTP; SYSTEM START LISTEN TCP; SELECT sleepEachRow(1) FROM numbers(100000)
SETTINGS max_block_size = 1, function_sleep_max_microseconds_per_block = 0 FORMAT Null"""
args = ["clickhouse", "--config-file=" + config, "--path=" + directory, "--listen_host=127.0.0.1", "--http_port=" + http, "--tcp_port=" + tcp,
        "--query", statements]
query(len(args), (ctypes.c_char_p * len(args))(*[arg.encode() for arg in args]))
sys.exit("the server has ended")
