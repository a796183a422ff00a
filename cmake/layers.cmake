# The order between the folders of src/: a folder may include folders of a LOWER rank only; the same rank never meets.
# Read by the build and by cmake/check_layers.cmake, which fails the build on a wrong #include. See docs/architecture.md.
set(WEIR_FOLDERS base flow metrics runtime wire protocol storage http broker client agent sink guard bench pipeline cli)

set(WEIR_RANK_base 0)
set(WEIR_RANK_flow 1)
set(WEIR_RANK_metrics 1)
set(WEIR_RANK_runtime 1)
set(WEIR_RANK_wire 1)
set(WEIR_RANK_protocol 2)
set(WEIR_RANK_storage 2)
set(WEIR_RANK_http 2)
set(WEIR_RANK_broker 3)
set(WEIR_RANK_client 3)
set(WEIR_RANK_agent 4)
set(WEIR_RANK_sink 4)
set(WEIR_RANK_guard 4)
set(WEIR_RANK_bench 4)
set(WEIR_RANK_pipeline 5)
set(WEIR_RANK_cli 6)

# Public headers (include/weir/) and the folder that implements each: they carry that folder's rank.
set(WEIR_PUBLIC_types base)
set(WEIR_PUBLIC_flow flow)
set(WEIR_PUBLIC_metrics metrics)
set(WEIR_PUBLIC_producer client)
set(WEIR_PUBLIC_consumer client)
set(WEIR_PUBLIC_record client)

# Libraries that only one folder may see.
set(WEIR_ONLY_asio runtime)
set(WEIR_ONLY_librdkafka client)
set(WEIR_ONLY_boost/beast http)
set(WEIR_ONLY_sqlite3.h sink)
