CREATE TABLE IF NOT EXISTS otel.sandbox_metrics (
    at DateTime64(3) CODEC(Delta(8), ZSTD(1)),
    box_id String CODEC(ZSTD(1)),
    started_at DateTime64(3) CODEC(Delta(8), ZSTD(1)),
    cpu_nanoseconds Int64 CODEC(Delta(8), ZSTD(1)),
    memory_bytes Int64 CODEC(Delta(8), ZSTD(1)),
    memory_cache_bytes Int64 CODEC(Delta(8), ZSTD(1)),
    processes Int64 CODEC(Delta(8), ZSTD(1)),
    disk_bytes Nullable(Int64) CODEC(ZSTD(1)),
    disk_bytes_read Nullable(Int64) CODEC(ZSTD(1)),
    disk_bytes_written Nullable(Int64) CODEC(ZSTD(1)),
    network_bytes_sent Nullable(Int64) CODEC(ZSTD(1)),
    network_bytes_received Nullable(Int64) CODEC(ZSTD(1))
) ENGINE = MergeTree
PARTITION BY toDate(at)
ORDER BY (box_id, at)
TTL @TTL@
SETTINGS index_granularity = 8192, ttl_only_drop_parts = 1, fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1
