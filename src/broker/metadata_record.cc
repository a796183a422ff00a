#include "broker/metadata_record.h"

#include <fmt/format.h>

#include "wire/reader.h"
#include "wire/writer.h"

namespace weir::broker {
namespace {

using wire::Form;

enum Type : std::int8_t { kCluster = 1, kTopic = 2, kTopicDeleted = 3, kConfig = 4, kQuota = 5, kProducerIds = 6 };

struct Encoder {
  wire::Writer out;

  void text(std::string_view s) { out.string(s, Form::kClassic); }
  void maybe(const std::optional<std::string>& s) { out.nullable_string(s, Form::kClassic); }

  void operator()(const ClusterRecord& r) {
    out.int8(kCluster);
    text(r.cluster_id);
  }
  void operator()(const TopicRecord& r) {
    out.int8(kTopic);
    text(r.name);
    out.uuid(r.id);
    out.int32(r.partitions);
  }
  void operator()(const TopicDeletedRecord& r) {
    out.int8(kTopicDeleted);
    text(r.name);
    out.uuid(r.id);
  }
  void operator()(const ConfigRecord& r) {
    out.int8(kConfig);
    out.int8(r.resource_type);
    text(r.resource_name);
    text(r.key);
    maybe(r.value);
  }
  void operator()(const QuotaRecord& r) {
    out.int8(kQuota);
    out.int32(static_cast<std::int32_t>(r.entity.size()));
    for (const auto& [type, name] : r.entity) {
      text(type);
      maybe(name);
    }
    text(r.key);
    out.boolean(r.value.has_value());
    if (r.value) out.float64(*r.value);
  }
  void operator()(const ProducerIdsRecord& r) {
    out.int8(kProducerIds);
    out.int64(r.next);
  }
};

std::string text(wire::Reader& in) { return std::string(in.string(Form::kClassic)); }
std::optional<std::string> maybe(wire::Reader& in) {
  const auto s = in.nullable_string(Form::kClassic);
  return s ? std::optional<std::string>(*s) : std::nullopt;
}

Result<MetadataRecord> decode_one(wire::Reader& in) {
  MetadataRecord record;
  const auto type = in.int8();
  switch (type) {
    case kCluster: record = ClusterRecord{text(in)}; break;
    case kTopic: {
      TopicRecord r;
      r.name = text(in);
      r.id = in.uuid();
      r.partitions = in.int32();
      if (r.partitions < 1) in.fail("a topic without partitions");
      record = r;
      break;
    }
    case kTopicDeleted: {
      TopicDeletedRecord r;
      r.name = text(in);
      r.id = in.uuid();
      record = r;
      break;
    }
    case kConfig: {
      ConfigRecord r;
      r.resource_type = in.int8();
      r.resource_name = text(in);
      r.key = text(in);
      r.value = maybe(in);
      record = r;
      break;
    }
    case kQuota: {
      QuotaRecord r;
      const auto parts = in.nullable_array_length(Form::kClassic).value_or(0);
      for (std::uint32_t i = 0; i < parts && in.ok(); ++i) {
        auto kind = text(in);
        r.entity.emplace_back(std::move(kind), maybe(in));
      }
      r.key = text(in);
      if (in.boolean()) r.value = in.float64();
      record = r;
      break;
    }
    case kProducerIds: record = ProducerIdsRecord{in.int64()}; break;
    default:
      if (in.ok()) {
        return fail(ErrorKind::kUnsupported,
                    fmt::format("metadata record of unknown type {}: written by a newer weir; start that one", type));
      }
  }
  if (auto ok = in.result(); !ok) return fail(ok.error().kind, "metadata record: " + ok.error().message);
  return record;
}

}  // namespace

ByteBuffer encode(const std::vector<MetadataRecord>& records) {
  Encoder encoder;
  for (const MetadataRecord& record : records) std::visit(encoder, record);
  return encoder.out.take();
}

Result<std::vector<MetadataRecord>> decode_metadata_records(ByteView bytes) {
  std::vector<MetadataRecord> records;
  for (wire::Reader in(bytes); in.remaining() > 0;) {
    auto record = decode_one(in);
    if (!record) return tl::unexpected(record.error());
    records.push_back(std::move(*record));
  }
  return records;
}

}  // namespace weir::broker
