# class: the log engine with the gate off
# order: 18
# where: client
# Statements that the gate would refuse are sent to the log engine itself, past it, as its
# default user. Its cage lets none of them read, write, reach or start anything outside.

import http.client
import os
import socket
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "client"))
from board import *

EARS = "127.0.0.1:%d" % PORT
OUT = OUTSIDE + "/made"

STATEMENTS = """
SELECT * FROM file('{outside}/file', 'LineAsString')
SELECT * FROM file('{outside}/*', 'RawBLOB', 'a String')
SELECT * FROM file('{outside}/**', 'LineAsString')
SELECT * FROM file('../../../../../../../..{outside}/file', 'LineAsString')
SELECT * FROM file('data/../../../../../../../..{outside}/file', 'LineAsString')
SELECT * FROM file('/etc/passwd', 'LineAsString')
SELECT * FROM file('/etc/shadow', 'LineAsString')
SELECT * FROM file('/proc/self/environ', 'RawBLOB', 'a String')
SELECT * FROM file('/proc/self/maps', 'LineAsString')
SELECT * FROM file('/proc/self/mem', 'RawBLOB', 'a String')
SELECT * FROM file('/proc/self/root{outside}/file', 'LineAsString')
SELECT * FROM file('/proc/1/cmdline', 'RawBLOB', 'a String')
SELECT * FROM file('/proc/1/root{outside}/file', 'LineAsString')
SELECT * FROM file('/proc/self/fd/3', 'RawBLOB', 'a String')
SELECT * FROM file('/dev/mem', 'RawBLOB', 'a String')
SELECT * FROM file('/dev/vda', 'RawBLOB', 'a String')
SELECT * FROM file('/sys/kernel/notes', 'RawBLOB', 'a String')
SELECT * FROM file('{home}/daemon/keys', 'LineAsString')
SELECT * FROM file('{home}/records/*', 'LineAsString')
SELECT * FROM file('{home}/../sentinel', 'LineAsString')
SELECT file('{outside}/file')
SELECT file('/proc/self/root{outside}/file')
SELECT * FROM `{outside}/file`
SELECT * FROM fileCluster('default', '{outside}/file', 'LineAsString')
SELECT * FROM filesystem('{outside}')
SELECT * FROM sqlite('{outside}/file', 'a')
SELECT * FROM executable('cat {outside}/file', 'LineAsString', 'a String')
SELECT * FROM executable('../../../../bin/cat', 'LineAsString', 'a String')
SELECT * FROM executable('/bin/sh', 'LineAsString', 'a String', (SELECT 'cat {outside}/file'))
SELECT * FROM python('{outside}/file')
SELECT catboostEvaluate('{outside}/file', 1)
SELECT * FROM icebergLocal('{outside}')
SELECT * FROM deltaLakeLocal('{outside}')
SELECT * FROM hudi('{outside}')
SELECT * FROM paimonLocal('{outside}')
SELECT * FROM url('file://{outside}/file', 'LineAsString')
SELECT * FROM url('http://{ears}/a', 'CSV', 'a String')
SELECT * FROM url('http://[::1]:{port}/a', 'CSV', 'a String')
SELECT * FROM url('http://169.254.169.254/latest/meta-data', 'CSV', 'a String')
SELECT * FROM urlCluster('default', 'http://{ears}/a', 'CSV', 'a String')
SELECT * FROM s3('http://{ears}/bucket/key', 'CSV', 'a String')
SELECT * FROM s3Cluster('default', 'http://{ears}/bucket/key', 'CSV', 'a String')
SELECT * FROM gcs('http://{ears}/bucket/key', 'CSV', 'a String')
SELECT * FROM oss('http://{ears}/bucket/key', 'CSV', 'a String')
SELECT * FROM azureBlobStorage('http://{ears}/', 'container', 'blob', 'account', 'a2V5', 'CSV', 'auto', 'a String')
SELECT * FROM hdfs('hdfs://{ears}/a', 'CSV', 'a String')
SELECT * FROM remote('{ears}', system.one)
SELECT * FROM remote('127.0.0.{{1..3}}:{port}', system.one)
SELECT * FROM remoteSecure('{ears}', system.one)
SELECT * FROM cluster('default', system.one, rand()) SETTINGS prefer_localhost_replica = 0
SELECT * FROM mysql('{ears}', 'd', 't', 'u', 'p')
SELECT * FROM postgresql('{ears}', 'd', 't', 'u', 'p')
SELECT * FROM mongodb('{ears}', 'd', 't', 'u', 'p', 'a String')
SELECT * FROM redis('{ears}', 'a', 'a String')
SELECT * FROM odbc('DSN=x;Server=127.0.0.1;Port={port}', 'd', 't')
SELECT * FROM jdbc('jdbc:mysql://{ears}', 'd', 't')
SELECT * FROM iceberg('http://{ears}/bucket/')
SELECT * FROM icebergS3('http://{ears}/bucket/')
SELECT * FROM icebergAzure('http://{ears}/', 'c', 'b', 'a', 'a2V5')
SELECT * FROM deltaLake('http://{ears}/bucket/')
SELECT * FROM arrowFlight('{ears}', 'd')
SELECT * FROM ytsaurus('http://{ears}', '//a', 't', 'a String')
INSERT INTO FUNCTION file('{out}1', 'CSV', 'a String') VALUES ('evil')
INSERT INTO FUNCTION file('{outside}/file', 'CSV', 'a String') SETTINGS engine_file_truncate_on_insert = 1 VALUES ('evil')
INSERT INTO FUNCTION url('http://{ears}/a', 'CSV', 'a String') VALUES ('x')
INSERT INTO FUNCTION s3('http://{ears}/b/k', 'CSV', 'a String') VALUES ('x')
INSERT INTO FUNCTION remote('{ears}', 'd', 't') VALUES ('x')
SELECT 1 INTO OUTFILE '{out}2'
SELECT 1 INTO OUTFILE '{outside}/file' TRUNCATE
BACKUP DATABASE otel TO File('{out}3')
BACKUP DATABASE otel TO Disk('default', '../../../../..{out}4')
BACKUP DATABASE otel TO S3('http://{ears}/b', 'a', 'b')
RESTORE DATABASE x FROM File('{outside}/file')
CREATE TABLE otel.f1 (a String) ENGINE = File(CSV, '{outside}/file')
CREATE TABLE otel.f2 (a String) ENGINE = MergeTree ORDER BY a SETTINGS disk = disk(type = local, path = '{out}5/')
CREATE TABLE otel.f3 (a String) ENGINE = MergeTree ORDER BY a SETTINGS disk = disk(type = web, endpoint = 'http://{ears}/')
CREATE TABLE otel.f4 (a String) ENGINE = URL('http://{ears}/', CSV)
CREATE TABLE otel.f5 (a String) ENGINE = Kafka('{ears}', 't', 'g', 'CSV')
CREATE TABLE otel.f6 (a String) ENGINE = RabbitMQ SETTINGS rabbitmq_host_port = '{ears}', rabbitmq_exchange_name = 'e', rabbitmq_format = 'CSV'
CREATE TABLE otel.f7 (a String) ENGINE = NATS SETTINGS nats_url = '{ears}', nats_subjects = 's', nats_format = 'CSV'
CREATE TABLE otel.f8 (a String) ENGINE = FileLog('{outside}', 'LineAsString')
CREATE TABLE otel.f9 (a String) ENGINE = Executable('cat {outside}/file', 'CSV')
CREATE TABLE otel.f10 (a String) ENGINE = EmbeddedRocksDB(0, '{out}6') PRIMARY KEY a
CREATE TABLE otel.f11 (a String) ENGINE = SQLite('{out}7', 't')
CREATE TABLE otel.f12 (a String) ENGINE = S3Queue('http://{ears}/b', 'CSV') SETTINGS mode = 'unordered'
CREATE DATABASE d1 ENGINE = Filesystem('{outside}')
CREATE DATABASE d2 ENGINE = SQLite('{out}8')
CREATE DATABASE d3 ENGINE = MySQL('{ears}', 'd', 'u', 'p')
CREATE DATABASE d4 ENGINE = PostgreSQL('{ears}', 'd', 'u', 'p')
CREATE DATABASE d5 ENGINE = S3('http://{ears}/b')
CREATE DATABASE d6 ENGINE = Backup('x', File('{outside}/file'))
CREATE DATABASE d7 ENGINE = DataLakeCatalog('http://{ears}/')
CREATE DICTIONARY otel.d1 (a String) PRIMARY KEY a SOURCE(FILE(PATH '{outside}/file' FORMAT 'LineAsString')) LAYOUT(COMPLEX_KEY_DIRECT())
CREATE DICTIONARY otel.d2 (a String) PRIMARY KEY a SOURCE(EXECUTABLE(COMMAND 'cat {outside}/file' FORMAT 'LineAsString')) LAYOUT(COMPLEX_KEY_DIRECT())
CREATE DICTIONARY otel.d3 (a String) PRIMARY KEY a SOURCE(HTTP(URL 'http://{ears}/' FORMAT 'CSV')) LAYOUT(COMPLEX_KEY_DIRECT())
CREATE DICTIONARY otel.d4 (a String) PRIMARY KEY a SOURCE(CLICKHOUSE(HOST '127.0.0.1' PORT {port} TABLE 't')) LAYOUT(COMPLEX_KEY_DIRECT())
CREATE DICTIONARY otel.d5 (a String) PRIMARY KEY a SOURCE(LIBRARY(PATH '{outside}/file')) LAYOUT(COMPLEX_KEY_DIRECT())
ATTACH TABLE otel.a1 FROM '{outside}' (a String) ENGINE = MergeTree ORDER BY a
CREATE FUNCTION evil AS (x) -> file('{outside}/file')
CREATE NAMED COLLECTION c AS url = 'http://{ears}/'
CREATE USER evil IDENTIFIED BY 'x' HOST ANY
CREATE WORKLOAD evil
ALTER TABLE otel.otel_logs FREEZE WITH NAME '../../../../../../..{out}9'
ALTER TABLE otel.otel_logs FETCH PARTITION 1 FROM '/evil'
ALTER TABLE otel.otel_logs MODIFY SETTING disk = disk(type = local, path = '{out}10/')
SYSTEM RELOAD CONFIG
SYSTEM DROP FILESYSTEM CACHE '{outside}'
SYSTEM UNFREEZE WITH NAME '../../..{outside}'
SYSTEM STOP LISTEN ON CLUSTER default TCP
SYSTEM START LISTEN TCP
SYSTEM ENABLE FAILPOINT evil
SET SEND_LOGS_LEVEL = 'trace'
SELECT * FROM system.disks WHERE path = '{outside}'
SELECT * FROM system.build_options WHERE value LIKE '%{secret}%'
SELECT * FROM system.server_settings WHERE value LIKE '%{outside}%'
SELECT * FROM system.asynchronous_metrics WHERE metric LIKE 'Network%' AND value > 0
SELECT * FROM system.stack_trace
SELECT * FROM system.zookeeper WHERE path = '/'
SELECT * FROM system.zookeeper WHERE path IN (SELECT '{outside}')
SELECT * FROM system.certificates
SELECT * FROM system.user_directories WHERE name = '{outside}'
SELECT * FROM system.remote_data_paths
SELECT * FROM system.filesystem_cache
SELECT * FROM system.detached_parts WHERE path LIKE '%{outside}%'
SELECT getOSKernelVersion(), hostName(), filesystemAvailable('{outside}')
SELECT readWKT('{outside}'), dictGet('{outside}', 'a', 1)
SELECT * FROM loop(file('{outside}/file', 'LineAsString')) LIMIT 1
SELECT * FROM merge('', '{outside}')
SELECT * FROM format(LineAsString, file('{outside}/file'))
SELECT 1 FORMAT Template SETTINGS format_template_row = '{outside}/file'
SELECT 1 FORMAT Template SETTINGS format_template_row = '../../../../../..{outside}/file', format_template_resultset = '/etc/passwd'
SELECT 1 FORMAT CapnProto SETTINGS format_schema = '{outside}/file:x'
SELECT 1 FORMAT Protobuf SETTINGS format_schema = '../../../../..{outside}/file:x'
SELECT * FROM otel.otel_logs SETTINGS user_files_path = '/'
SELECT * FROM file('{outside}/file', 'LineAsString') SETTINGS storage_file_read_method = 'mmap'
SELECT * FROM file('{outside}/file', 'LineAsString') SETTINGS storage_file_read_method = 'read'
SELECT * FROM file('{outside}/file', 'LineAsString') SETTINGS engine_file_skip_empty_files = 1
SELECT aes_decrypt_mysql('aes-128-ecb', file('{outside}/file'), 'k')
EXPLAIN SELECT * FROM url('http://{ears}/', CSV)
DESCRIBE TABLE url('http://{ears}/x')
DESCRIBE TABLE file('{outside}/file')
SHOW CREATE TABLE `{outside}/file`
EXISTS TABLE `{outside}/file`
CHECK TABLE `{outside}/file`
WATCH `{outside}/file`
KILL QUERY WHERE 1 SYNC
SYSTEM FLUSH LOGS
SYSTEM KILL
SYSTEM SHUTDOWN
"""

# Statements that take all that there is: the engine ends, or says no, and the host goes on.
GREEDY = {
    "memory": "SELECT arrayMap(x -> repeat('x', 1000000000), range(1000000))", "rows": "SELECT count() FROM numbers(1000000000000000) GROUP BY number", "a sort": "SELECT number FROM numbers(100000000000) ORDER BY rand()",
    "a pattern": "SELECT match(repeat('a', 100000), '(a*)*b')", "threads": "SELECT count() FROM numbers_mt(1000000000000) SETTINGS max_threads = 10000", "a depth": "SELECT " + "(" * 20_000 + "1" + ")" * 20_000,
    "columns": "SELECT " + ",".join("1" for _ in range(100_000)), "sleep": "SELECT sleepEachRow(3) FROM numbers(1000) SETTINGS function_sleep_max_microseconds_per_block = 0",
}


def engine_socket():
    for base, _, names in os.walk(HOME + "/logs"):
        for name in names:
            if os.path.exists(os.path.join(base, name)) and (os.stat(os.path.join(base, name)).st_mode & 0o170000) == 0o140000:
                return os.path.join(base, name)
    raise SystemExit("the log engine has no socket")


def query(sql, patience=10):
    """Sends a statement to the engine itself. An engine that ends is started again."""
    end = time.monotonic() + TIME
    while True:
        conn = http.client.HTTPConnection("engine", timeout=patience)
        try:
            conn.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            conn.sock.settimeout(patience)
            conn.sock.connect(PATH)
            break
        except (FileNotFoundError, ConnectionRefusedError):
            conn.close()
            if time.monotonic() > end:
                raise
            time.sleep(0.05)
    try:
        conn.request("POST", "/", sql.encode())
        answer = conn.getresponse()
        return answer.status, answer.read(1 << 20)
    except (http.client.HTTPException, ConnectionError):
        return 0, b"it broke off"
    except TimeoutError:
        return 0, b"no answer"
    finally:
        conn.close()


def state(sql):
    """A statement that reads nothing of the host's, whatever it answers."""
    status, body = query(sql.format(outside=OUTSIDE, out=OUT, ears=EARS, port=PORT, home=HOME, secret="\0"))
    silent(body)
    for line in (b"root:x:0", b"root:*:", b"PATH=", b"SANDBOX_HOME"):
        if line in body:
            raise Through("it read %r" % body[:80])
    if status == 200:
        return "answered with nothing of the host"
    text = body.decode(errors="replace")
    return text[text.rfind("(") + 1:text.rfind(")")][:40] if "(" in text and text.isprintable() else text.split("\n")[0][:20] if status == 0 else "an error"


def greedy(sql):
    status, body = query(sql)
    return "answered" if status == 200 else body.decode(errors="replace")[:20] if status == 0 else "an error"


def attacks():
    for sql in STATEMENTS.strip().split("\n"):
        yield sql[:100], bound(state, sql)
    for name, sql in GREEDY.items():
        yield "a statement that takes " + name, bound(greedy, sql)


PATH = engine_socket()
if query("SELECT 40 + 2") != (200, b"42\n"):
    raise SystemExit("the engine does not answer")
run(attacks(), several=4)
if query("SELECT 40 + 2") != (200, b"42\n"):
    raise SystemExit("the engine does not answer any more")
