#include "pipeline/config_file.h"

#include <gtest/gtest.h>

namespace weir::pipeline {
namespace {

std::string error_of(const std::string& text) {
  const auto parsed = parse_config(text, "w.yaml");
  return parsed ? "no error" : parsed.error().message;
}

TEST(ConfigFileTest, DottedAndNestedNamesAreTheSameAndKeepTheirLine) {
  const auto parsed = parse_config(
      "producer:\n  buffer.memory: 64MiB\n  linger:\n    ms: 10\nagent:\n  inputs: [a.log, b.log]\n", "w.yaml");
  ASSERT_TRUE(parsed) << parsed.error().message;
  ASSERT_EQ(parsed->size(), 2u);
  const Section& producer = (*parsed)[0];
  EXPECT_EQ(producer.name, "producer");
  EXPECT_EQ(producer.settings[0].name, "buffer.memory");
  EXPECT_EQ(producer.settings[1].name, "linger.ms");
  EXPECT_EQ(producer.settings[1].where, "w.yaml:4");
  EXPECT_EQ((*parsed)[1].settings.size(), 2u);
  EXPECT_EQ((*parsed)[1].settings[1].value, "b.log");
}

TEST(ConfigFileTest, MistakesNameFileAndLine) {
  EXPECT_EQ(error_of("producer:\n  a: 1\n  a: 2\n"), "w.yaml:3: a is set twice");
  EXPECT_EQ(error_of("producer: 5\n"), "w.yaml:1: producer is a section; its settings go below it");
  EXPECT_EQ(error_of("producer:\n  acks:\n"), "w.yaml:2: acks has no value; give it one or take the line out");
  EXPECT_TRUE(error_of("producer:\n  - [").starts_with("w.yaml:")) << error_of("producer:\n  - [");
  EXPECT_TRUE(error_of("- a\n- b\n").starts_with("w.yaml:1: the file must be a map"));
  EXPECT_EQ(error_of(""), "no error");
}

TEST(ConfigFileTest, AMissingFileIsNamed) {
  const auto loaded = load_config("/nonexistent/weir.yaml");
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().message, "/nonexistent/weir.yaml: cannot read the config file: No such file or directory");
}

}  // namespace
}  // namespace weir::pipeline
