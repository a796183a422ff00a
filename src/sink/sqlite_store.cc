#include "sink/sqlite_store.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <array>
#include <utility>

#include "base/assert.h"

namespace weir::sink {
namespace {

constexpr const char* kSchema = R"(
  CREATE TABLE IF NOT EXISTS logs(
    topic TEXT NOT NULL, part INTEGER NOT NULL, off INTEGER NOT NULL, server_id TEXT NOT NULL, level TEXT NOT NULL,
    message TEXT NOT NULL, timestamp INTEGER NOT NULL, source TEXT, source_pos INTEGER,
    PRIMARY KEY (topic, part, off), UNIQUE (source, source_pos)) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS positions(
    topic TEXT NOT NULL, part INTEGER NOT NULL, next INTEGER NOT NULL, PRIMARY KEY (topic, part)) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS topics(topic TEXT PRIMARY KEY, id TEXT NOT NULL) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS about(name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
)";

enum Statement {
  kBegin,
  kCommit,
  kRollback,
  kInsert,
  kPlace,
  kPosition,
  kPositions,
  kCluster,
  kSetCluster,
  kTopicIds,
  kSetTopicId,
  kStatements
};

constexpr std::array<const char*, kStatements> kSql = {
    "BEGIN IMMEDIATE",
    "COMMIT",
    "ROLLBACK",
    "INSERT INTO logs VALUES(?,?,?,?,?,?,?,?,?) ON CONFLICT(source, source_pos) DO NOTHING",
    "SELECT source, source_pos FROM logs WHERE topic=? AND part=? AND off=?",
    "INSERT INTO positions VALUES(?,?,?) ON CONFLICT(topic, part) DO UPDATE SET next=excluded.next",
    "SELECT topic, part, next FROM positions",
    "SELECT value FROM about WHERE name='cluster'",
    "INSERT INTO about VALUES('cluster', ?) ON CONFLICT(name) DO UPDATE SET value=excluded.value",
    "SELECT topic, id FROM topics",
    "INSERT INTO topics VALUES(?,?) ON CONFLICT(topic) DO UPDATE SET id=excluded.id",
};

class SqliteStore final : public Store {
 public:
  explicit SqliteStore(std::string name) : name_(std::move(name)) {}
  ~SqliteStore() override {
    for (sqlite3_stmt* statement : statements_) sqlite3_finalize(statement);
    sqlite3_close(db_);
  }
  SqliteStore(const SqliteStore&) = delete;
  SqliteStore& operator=(const SqliteStore&) = delete;

  Result<void> open() {
    if (sqlite3_open_v2(name_.c_str(), &db_, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
                        nullptr) != SQLITE_OK) {
      return error();
    }
    sqlite3_extended_result_codes(db_, 1);
    sqlite3_busy_timeout(db_, 2000);
    for (const char* sql : {"PRAGMA journal_mode=WAL", "PRAGMA synchronous=FULL", kSchema}) {
      if (sqlite3_exec(db_, sql, nullptr, nullptr, nullptr) != SQLITE_OK) return error();
    }
    for (int i = 0; i < kStatements; ++i) {
      if (sqlite3_prepare_v3(db_, kSql[i], -1, SQLITE_PREPARE_PERSISTENT, &statements_[i], nullptr) != SQLITE_OK)
        return error();
    }
    return {};
  }

  Result<Positions> positions() override {
    Positions out;
    sqlite3_stmt* s = fresh(kPositions);
    int code = SQLITE_ROW;
    while ((code = sqlite3_step(s)) == SQLITE_ROW) {
      out[{text(s, 0), PartitionId(sqlite3_column_int(s, 1))}] = Offset(sqlite3_column_int64(s, 2));
    }
    if (code != SQLITE_DONE) return error();
    sqlite3_reset(s);
    return out;
  }

  Result<std::string> cluster() override {
    sqlite3_stmt* s = fresh(kCluster);
    const int code = sqlite3_step(s);
    if (code != SQLITE_ROW && code != SQLITE_DONE) return error();
    std::string id = code == SQLITE_ROW ? text(s, 0) : std::string();
    sqlite3_reset(s);
    return id;
  }

  Result<void> set_cluster(const std::string& id) override {
    bind(fresh(kSetCluster), 1, id);
    if (run(kSetCluster) != SQLITE_DONE) return error();
    return {};
  }

  Result<TopicIds> topic_ids() override {
    TopicIds out;
    sqlite3_stmt* s = fresh(kTopicIds);
    int code = SQLITE_ROW;
    while ((code = sqlite3_step(s)) == SQLITE_ROW) out[text(s, 0)] = text(s, 1);
    if (code != SQLITE_DONE) return error();
    sqlite3_reset(s);
    return out;
  }

  Result<void> set_topic_id(const std::string& topic, const std::string& id) override {
    sqlite3_stmt* s = fresh(kSetTopicId);
    bind(s, 1, topic);
    bind(s, 2, id);
    if (run(kSetTopicId) != SQLITE_DONE) return error();
    return {};
  }

  Written write(std::span<const Row> rows, const Positions& next) override {
    if (gone()) {
      return Written::failed(Written::Kind::kBroken,
                             {ErrorKind::kIo, fmt::format("{} was removed or replaced while it is in use: nothing more "
                                                          "would be kept; start again to go on in what is there now",
                                                          name_)});
    }
    fresh(kBegin);
    if (run(kBegin) != SQLITE_DONE) return undo();
    Written out;
    out.duplicate.resize(rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const int code = insert(rows[i]);
      if (code == SQLITE_DONE) {
        out.duplicate[i] = sqlite3_changes(db_) == 0;
      } else if (code == SQLITE_CONSTRAINT_PRIMARYKEY) {
        if (!same_source(rows[i])) return broken(rows[i]);
        out.duplicate[i] = true;
      } else if (code == SQLITE_TOOBIG) {
        std::string why = sqlite3_errmsg(db_);
        roll_back();
        return Written::refused(i, std::move(why));
      } else {
        return undo();
      }
    }
    for (const auto& [partition, offset] : next) {
      sqlite3_stmt* s = fresh(kPosition);
      bind(s, 1, partition.topic);
      sqlite3_bind_int(s, 2, partition.partition.value);
      sqlite3_bind_int64(s, 3, offset.value);
      if (run(kPosition) != SQLITE_DONE) return undo();
    }
    fresh(kCommit);
    if (run(kCommit) != SQLITE_DONE) return undo();
    return out;
  }

 private:
  sqlite3_stmt* fresh(Statement which) {
    sqlite3_reset(statements_[which]);
    return statements_[which];
  }
  // Steps a statement that gives no rows. Its parameters point into the caller's memory, so they are let go at once.
  int run(Statement which) {
    const int code = sqlite3_step(statements_[which]);
    sqlite3_reset(statements_[which]);
    sqlite3_clear_bindings(statements_[which]);
    return code;
  }
  static void bind(sqlite3_stmt* s, int at, std::string_view text) {
    // A null pointer would bind NULL, so the empty text needs an address.
    sqlite3_bind_text64(s, at, text.empty() ? "" : text.data(), text.size(), SQLITE_STATIC, SQLITE_UTF8);
  }
  static std::string text(sqlite3_stmt* s, int column) {
    const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(s, column));
    return {bytes, static_cast<std::size_t>(sqlite3_column_bytes(s, column))};
  }

  int insert(const Row& row) {
    sqlite3_stmt* s = fresh(kInsert);
    bind(s, 1, row.partition->topic);
    sqlite3_bind_int(s, 2, row.partition->partition.value);
    sqlite3_bind_int64(s, 3, row.offset.value);
    bind(s, 4, row.server_id);
    bind(s, 5, row.level);
    bind(s, 6, row.message);
    sqlite3_bind_int64(s, 7, row.timestamp);
    if (row.source && row.source_pos) {
      bind(s, 8, *row.source);
      sqlite3_bind_int64(s, 9, *row.source_pos);
    } else {
      sqlite3_bind_null(s, 8);
      sqlite3_bind_null(s, 9);
    }
    return run(kInsert);
  }

  // Whether the row at this place is the very same record, stored before.
  bool same_source(const Row& row) {
    sqlite3_stmt* s = fresh(kPlace);
    bind(s, 1, row.partition->topic);
    sqlite3_bind_int(s, 2, row.partition->partition.value);
    sqlite3_bind_int64(s, 3, row.offset.value);
    bool same = false;
    if (sqlite3_step(s) == SQLITE_ROW) {
      const bool has_source = sqlite3_column_type(s, 0) != SQLITE_NULL;
      same = has_source ? row.source && row.source_pos && text(s, 0) == *row.source &&
                              sqlite3_column_int64(s, 1) == *row.source_pos
                        : !(row.source && row.source_pos);
    }
    sqlite3_reset(s);
    sqlite3_clear_bindings(s);
    return same;
  }

  // The file may be deleted under an open database, which SQLite would go on writing into.
  bool gone() {
    int moved = 0;
    return sqlite3_file_control(db_, "main", SQLITE_FCNTL_HAS_MOVED, &moved) == SQLITE_OK && moved != 0;
  }

  void roll_back() {
    if (sqlite3_get_autocommit(db_) != 0) return;  // SQLite has done it already
    fresh(kRollback);
    run(kRollback);
  }

  Written undo() {
    Error what = error().value();
    const int code = sqlite3_errcode(db_) & 0xff;
    roll_back();
    if (code == SQLITE_CORRUPT || code == SQLITE_NOTADB || code == SQLITE_CONSTRAINT) {
      return Written::failed(Written::Kind::kBroken, std::move(what));
    }
    return Written::failed(Written::Kind::kRetry, std::move(what));
  }

  Written broken(const Row& row) {
    roll_back();
    return Written::failed(
        Written::Kind::kBroken,
        {ErrorKind::kInvalid,
         fmt::format("{}: {}/{} offset {} is stored already with another source: the topic was made anew or "
                     "this is another cluster; use another --data",
                     name_, row.partition->topic, row.partition->partition.value, row.offset.value)});
  }

  tl::unexpected<Error> error() const {
    const int code = db_ == nullptr ? SQLITE_NOMEM : sqlite3_errcode(db_) & 0xff;
    const ErrorKind kind = code == SQLITE_FULL   ? ErrorKind::kNoSpace
                           : code == SQLITE_BUSY ? ErrorKind::kUnavailable
                                                 : ErrorKind::kIo;
    return fail(kind, fmt::format("{}: {}", name_, db_ == nullptr ? "out of memory" : sqlite3_errmsg(db_)));
  }

  const std::string name_;
  sqlite3* db_ = nullptr;
  std::array<sqlite3_stmt*, kStatements> statements_{};
};

}  // namespace

Result<std::unique_ptr<Store>> open_sqlite_store(const std::filesystem::path& file) {
  auto store = std::make_unique<SqliteStore>(file.string());
  if (auto opened = store->open(); !opened) return tl::unexpected(opened.error());
  return store;
}

}  // namespace weir::sink
