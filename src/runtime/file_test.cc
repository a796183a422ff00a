#include <gtest/gtest.h>

#include "runtime/memory_file_system.h"
#include "runtime/process.h"
#include "runtime/temp_directory.h"

namespace weir::runtime {
namespace {

std::string content(FileSystem& files, const Path& path) {
  auto bytes = files.read_all(path, kMiB);
  return bytes ? std::string(as_text(*bytes)) : "error: " + bytes.error().message;
}

/// What both file systems must do alike.
void behaves(FileSystem& files, const Path& root) {
  EXPECT_EQ(files.open(root / "none", OpenMode::kRead).error().kind, ErrorKind::kNotFound);
  ASSERT_TRUE(files.make_directories(root / "a/b"));
  ASSERT_TRUE(files.make_directories(root / "a/b"));
  auto file = files.open(root / "a/b/f", OpenMode::kCreateNew).value();
  EXPECT_EQ(files.open(root / "a/b/f", OpenMode::kCreateNew).error().kind, ErrorKind::kExists);
  const ByteView pieces[] = {as_bytes("hello"), as_bytes(""), as_bytes(" world")};
  ASSERT_TRUE(file->write_at(0, pieces));
  ASSERT_TRUE(file->append(as_bytes("!")));
  ASSERT_TRUE(file->sync());
  EXPECT_EQ(file->size().value(), 12u);
  std::array<std::byte, 20> buffer;
  EXPECT_EQ(file->read_at(6, buffer).value(), 6u);
  EXPECT_EQ(as_text(ByteView(buffer).first(6)), "world!");
  EXPECT_EQ(file->read_at(99, buffer).value(), 0u);
  ASSERT_TRUE(file->truncate(5));
  EXPECT_EQ(content(files, root / "a/b/f"), "hello");
  ASSERT_TRUE(files.replace(root / "a/b/g", as_bytes("new")));
  ASSERT_TRUE(files.rename(root / "a/b/g", root / "a/b/f"));
  EXPECT_EQ(content(files, root / "a/b/f"), "new");
  EXPECT_EQ(files.read_all(root / "a/b/f", 2).error().kind, ErrorKind::kInvalid);
  EXPECT_EQ(file->size().value(), 5u) << "an open file outlives its name";
  auto listed = files.list(root / "a").value();
  ASSERT_EQ(listed.size(), 1u);
  EXPECT_EQ(listed[0].name, "b");
  EXPECT_EQ(listed[0].type, FileType::kDirectory);
  EXPECT_FALSE(files.remove(root / "a")) << "not empty";
  {
    auto held = files.lock(root / ".lock").value();
    auto second = files.lock(root / ".lock");
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().kind, ErrorKind::kExists);
    EXPECT_NE(second.error().message.find("in use by process"), std::string::npos);
  }
  EXPECT_TRUE(files.lock(root / ".lock")) << "free again";
  EXPECT_GT(files.free_space(root).value(), 0u);
  ASSERT_TRUE(files.remove_all(root / "a"));
  EXPECT_FALSE(files.exists(root / "a"));
  EXPECT_TRUE(files.remove(root / "a")) << "gone already";
}

TEST(File, PosixDoesWhatTheInterfaceSays) {
  TempDirectory directory;
  behaves(posix_file_system(), directory.path());
  const auto before = posix_file_system().status(directory.path()).value();
  EXPECT_NE(before.inode, 0u);
  EXPECT_EQ(before.type, FileType::kDirectory);
}

TEST(File, PosixWritesManyPieces) {
  TempDirectory directory;
  auto file = posix_file_system().open(directory / "f", OpenMode::kCreateNew).value();
  std::vector<ByteView> pieces(300, as_bytes("0123456789"));
  ASSERT_TRUE(file->write_at(0, pieces));
  EXPECT_EQ(file->size().value(), 3000u);
}

TEST(File, TemporaryDirectoryGoesAway) {
  Path path;
  {
    TempDirectory directory;
    path = directory.path();
    ASSERT_TRUE(posix_file_system().replace(path / "f", as_bytes("x")));
  }
  EXPECT_FALSE(posix_file_system().exists(path));
}

TEST(MemoryFileSystem, DoesWhatTheInterfaceSays) {
  MemoryFileSystem files;
  behaves(files, "/root");
}

TEST(MemoryFileSystem, CrashKeepsWhatWasSyncedAndSomeFirstPartOfTheRest) {
  bool lost = false, kept = false, torn = false, zeroed = false;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    MemoryFileSystem files;
    auto file = files.open("/f", OpenMode::kCreateNew).value();
    ASSERT_TRUE(files.sync_directory("/"));
    ASSERT_TRUE(file->append(as_bytes("durable.")));
    ASSERT_TRUE(file->sync());
    ASSERT_TRUE(file->append(as_bytes("one.")));
    ASSERT_TRUE(file->append(as_bytes("two.")));
    files.crash(seed);
    EXPECT_EQ(file->append(as_bytes("x")).error().kind, ErrorKind::kClosed);
    const std::string left = content(files, "/f");
    ASSERT_TRUE(left.starts_with("durable.")) << left;
    lost |= left == "durable.";
    kept |= left == "durable.one.two.";
    torn |= left == "durable.o";
    zeroed |= left == std::string("durable.o\0\0\0", 12);
  }
  EXPECT_TRUE(lost && kept && torn && zeroed);
}

TEST(MemoryFileSystem, NamesAreLostUntilTheDirectoryIsSynced) {
  bool there = false, gone = false, old_name = false, new_name = false;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    MemoryFileSystem files;
    ASSERT_TRUE(files.replace("/old", as_bytes("x")));
    ASSERT_TRUE(files.open("/f", OpenMode::kCreateNew).value()->sync());
    ASSERT_TRUE(files.rename("/old", "/new"));
    files.crash(seed);
    (files.exists("/f") ? there : gone) = true;
    EXPECT_NE(files.exists("/old"), files.exists("/new")) << "a rename is atomic";
    (files.exists("/new") ? new_name : old_name) = true;
  }
  EXPECT_TRUE(there && gone && old_name && new_name);
}

TEST(MemoryFileSystem, FaultsHappenWhenAskedFor) {
  MemoryFileSystem files;
  auto file = files.open("/f", OpenMode::kCreateNew).value();
  files.set_free_space(4);
  EXPECT_EQ(file->append(as_bytes("123456")).error().kind, ErrorKind::kNoSpace);
  EXPECT_EQ(content(files, "/f"), "1234") << "a short write";
  ASSERT_TRUE(file->write_at(0, as_bytes("abcd"))) << "overwriting needs no room";
  ASSERT_TRUE(file->truncate(0));
  ASSERT_TRUE(file->append(as_bytes("12"))) << "room was given back";
  files.set_free_space({});
  files.fail_write_after(1);
  EXPECT_EQ(file->append(as_bytes("xy")).error().kind, ErrorKind::kIo);
  EXPECT_TRUE(file->append(as_bytes("xy")));
}

TEST(MemoryFileSystem, BytesOfAFailedSyncStayLost) {
  MemoryFileSystem files;
  auto file = files.open("/f", OpenMode::kCreateNew).value();
  ASSERT_TRUE(files.sync_directory("/"));
  ASSERT_TRUE(file->append(as_bytes("1")));
  files.fail_sync(1, "f");
  EXPECT_FALSE(file->sync());
  EXPECT_TRUE(file->sync());
  files.crash(7);
  EXPECT_EQ(content(files, "/f"), "");
}

TEST(Process, KnowsItself) {
  EXPECT_GT(resident_bytes(), kMiB);
  EXPECT_GE(peak_resident_bytes(), resident_bytes() / 2);
  EXPECT_GT(open_descriptors(), 2u);
  EXPECT_GE(raise_file_limit(), 256u);
  EXPECT_FALSE(host_name().empty());
  EXPECT_EQ(executable_path().filename(), "runtime_test");
  const Duration before = cpu_time();
  volatile std::uint64_t spin = 0;
  while (cpu_time() == before) spin = spin + 1;
  EXPECT_GT(cpu_time(), before);
}

}  // namespace
}  // namespace weir::runtime
