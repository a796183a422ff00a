#include "runtime/tcp.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <future>

#include "runtime/blocking_socket.h"
#include "runtime/frame_reader.h"
#include "runtime/memory_file_system.h"
#include "runtime/temp_directory.h"

namespace weir::runtime {
namespace {

using namespace std::chrono_literals;

MonoTime soon() { return system_clock().now().mono + 10s; }

/// Collects what arrives; its promises are what tests wait for.
struct Collector : ConnectionOwner {
  std::span<std::byte> read_buffer() override { return buffer; }
  void received(Bytes n) override {
    text.append(reinterpret_cast<const char*>(buffer.data()), n);
    if (const auto keep = on_data) keep();  // it may reset itself
  }
  void drained() override {
    if (on_drained) std::exchange(on_drained, nullptr)();
  }
  void closed(const Error& why) override { ended.set_value(why); }

  std::array<std::byte, 1024> buffer;
  std::string text;
  std::function<void()> on_data, on_drained;
  std::promise<Error> ended;
};

/// A server on a loop of its own that hands each connection to `accepted`.
struct Server {
  Server() {
    listener = listen(loop, {"127.0.0.1", 0}, [this](std::shared_ptr<Connection> c) {
                 accepted.set_value(std::move(c));
               }).value();
    loop.start();
  }
  ~Server() {
    loop.call([this] { listener.reset(); });
  }
  BlockingSocket client() { return BlockingSocket::connect(listener->address(), soon()).value(); }
  std::shared_ptr<Connection> connection() {
    auto future = accepted.get_future();
    EXPECT_EQ(future.wait_for(10s), std::future_status::ready);
    return future.get();
  }

  EventLoop loop{"test"};
  std::unique_ptr<Listener> listener;
  std::promise<std::shared_ptr<Connection>> accepted;
};

std::string read_text(BlockingSocket& socket, Bytes n) {
  std::string text(n, '\0');
  auto read = socket.read(std::as_writable_bytes(std::span(text)), soon());
  return read ? text : "error: " + read.error().message;
}

TEST(EventLoop, RunsWorkInOrderAndTimersByTime) {
  EventLoop loop("test");
  std::string order;
  const MonoTime now = loop.now().mono;
  loop.call_at(now + 2ms, [&] { order += 'c'; });
  const TimerId never = loop.call_at(now + 1ms, [&] { order += 'x'; });
  loop.call_at(now + 1ms, [&] { order += 'b'; });
  loop.call_at(now + 3ms, [&] { loop.stop(); });
  EXPECT_TRUE(loop.cancel(never));
  EXPECT_FALSE(loop.cancel(never));
  loop.post([&] {
    EXPECT_TRUE(loop.in_loop());
    order += 'a';
    loop.dispatch([&] { order += '!'; });
  });
  loop.run();
  EXPECT_EQ(order, "a!bc");
  EXPECT_FALSE(loop.in_loop());
}

TEST(EventLoop, ATimerForNowDoesNotStarveTheRest) {
  EventLoop loop("test");
  int rounds = 0;
  std::function<void()> again = [&] { ++rounds, loop.call_after(0s, again); };
  loop.call_after(0s, again);
  loop.call_after(1ms, [&] { loop.stop(); });
  loop.run();
  EXPECT_GT(rounds, 0);
}

TEST(EventLoop, CallWaitsAndFailsAfterTheEnd) {
  EventLoop loop("test");
  loop.start();
  int x = 0;
  EXPECT_TRUE(loop.call([&] { x = 1; }));
  EXPECT_EQ(x, 1);
  loop.stop();
  loop.join();
  EXPECT_FALSE(loop.call([&] { x = 2; }));
  EXPECT_EQ(x, 1);
}

TEST(Tcp, EchoesAndReportsTheEnd) {
  Server server;
  auto client = server.client();
  auto owner = std::make_shared<Collector>();
  auto connection = server.connection();
  server.loop.call([&] {
    owner->on_data = [&, c = connection.get()] {
      Payload reply;
      reply.append(to_buffer(as_bytes(std::exchange(owner->text, {}))));
      c->send(std::move(reply));
    };
    connection->start(owner);
  });
  EXPECT_EQ(connection->local(), server.listener->address().text());
  ASSERT_TRUE(client.write(as_bytes("hello"), soon()));
  EXPECT_EQ(read_text(client, 5), "hello");
  {
    const auto closed = std::move(client);
  }
  const Error why = owner->ended.get_future().get();
  EXPECT_EQ(why.kind, ErrorKind::kClosed);
}

TEST(Tcp, SendsMemoryAndFilesInOrder) {
  TempDirectory directory;
  std::string big(20 * kMiB, '\0');
  for (std::size_t i = 0; i < big.size(); ++i) big[i] = static_cast<char>('a' + i * 7 % 26);
  ASSERT_TRUE(posix_file_system().replace(directory / "f", as_bytes(big)));
  MemoryFileSystem memory;
  ASSERT_TRUE(memory.replace("/f", as_bytes(big)));
  auto real = posix_file_system().open(directory / "f", OpenMode::kRead).value();
  auto copied = memory.open("/f", OpenMode::kRead).value();

  Server server;
  auto client = server.client();
  auto owner = std::make_shared<Collector>();
  auto connection = server.connection();
  std::promise<void> drained;
  server.loop.call([&] {
    connection->start(owner);
    owner->on_drained = [&] { drained.set_value(); };
    Payload payload;
    payload.append(to_buffer(as_bytes("head")));
    payload.append(FileRange{real, 10, 19 * kMiB});
    payload.append(to_buffer(as_bytes("between")));
    payload.append(FileRange{copied, 5, kMiB});
    payload.append(to_buffer(as_bytes("tail")));
    connection->send(std::move(payload));
    EXPECT_GT(connection->unsent(), 0u) << "more than socket buffers hold";
  });
  const std::string expected = "head" + big.substr(10, 19 * kMiB) + "between" + big.substr(5, kMiB) + "tail";
  EXPECT_TRUE(read_text(client, expected.size()) == expected);
  drained.get_future().get();
  server.loop.call([&] { EXPECT_EQ(connection->unsent(), 0u); });
}

TEST(Tcp, APausedConnectionDoesNotReadAndTcpPushesBack) {
  Server server;
  auto client = server.client();
  auto owner = std::make_shared<Collector>();
  auto connection = server.connection();
  server.loop.call([&] {
    connection->pause_reading();
    connection->start(owner);
  });
  // Writes until the kernel takes no more: the peer's window is full.
  const std::string chunk(64 * kKiB, 'x');
  Bytes sent = 0;
  while (sent < kGiB) {
    if (!client.write(as_bytes(chunk), system_clock().now().mono + 20ms)) break;
    sent += chunk.size();
  }
  EXPECT_LT(sent, 64 * kMiB);
  std::promise<void> more;
  server.loop.call([&] {
    EXPECT_TRUE(owner->text.empty());
    owner->on_data = [&] {
      if (owner->text.size() < sent) return;
      owner->on_data = nullptr;
      more.set_value();
    };
    connection->resume_reading();
  });
  EXPECT_EQ(more.get_future().wait_for(10s), std::future_status::ready);
}

TEST(Tcp, ClosesWhenEverythingIsSent) {
  Server server;
  auto client = server.client();
  auto owner = std::make_shared<Collector>();
  auto connection = server.connection();
  server.loop.call([&] {
    connection->start(owner);
    Payload payload;
    payload.append(ByteBuffer(4 * kMiB, std::byte{1}));
    connection->send(std::move(payload));
    connection->close_when_sent("bye");
    EXPECT_TRUE(connection->open());
  });
  EXPECT_EQ(read_text(client, 4 * kMiB).size(), 4 * kMiB);
  std::array<std::byte, 1> one;
  EXPECT_EQ(client.read_some(one, soon()).value(), 0u);
  EXPECT_EQ(owner->ended.get_future().get().message, "bye");
}

TEST(Tcp, AFileShorterThanSaidEndsTheConnection) {
  MemoryFileSystem memory;
  ASSERT_TRUE(memory.replace("/f", as_bytes("short")));
  Server server;
  auto client = server.client();
  auto owner = std::make_shared<Collector>();
  auto connection = server.connection();
  server.loop.call([&] {
    connection->start(owner);
    Payload payload;
    payload.append(FileRange{memory.open("/f", OpenMode::kRead).value(), 0, 100});
    connection->send(std::move(payload));
  });
  EXPECT_EQ(owner->ended.get_future().get().kind, ErrorKind::kIo);
}

TEST(Tcp, ConnectsAndSaysWhyNot) {
  Server server;
  EventLoop loop("client");
  loop.start();
  const auto attempt = [&](const Address& address) {
    std::promise<Result<std::shared_ptr<Connection>>> done;
    connect(loop, address, 5s, [&](Result<std::shared_ptr<Connection>> c) { done.set_value(std::move(c)); });
    return done.get_future().get();
  };
  auto connected = attempt(server.listener->address());
  ASSERT_TRUE(connected);
  EXPECT_EQ((*connected)->peer(), server.listener->address().text());
  loop.call([&] { (*connected)->close("done"); });

  Address free = server.listener->address();
  server.loop.call([&] { server.listener.reset(); });
  auto refused = attempt(free);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::kUnavailable);
  EXPECT_NE(refused.error().message.find(free.text()), std::string::npos);
  EXPECT_EQ(BlockingSocket::connect(free, soon()).error().kind, ErrorKind::kUnavailable);
}

TEST(BlockingSocketTest, ConnectingIsInterrupted) {
  // Nobody accepts and the queue is short: the kernel drops what else would connect.
  const int server = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in name{.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
  socklen_t size = sizeof name;
  ASSERT_EQ(::bind(server, reinterpret_cast<sockaddr*>(&name), sizeof name), 0);
  ASSERT_EQ(::listen(server, 0), 0);
  ASSERT_EQ(::getsockname(server, reinterpret_cast<sockaddr*>(&name), &size), 0);
  const Address address{"127.0.0.1", ntohs(name.sin_port)};
  const std::atomic<bool> interrupted = true;
  std::vector<BlockingSocket> queued;
  Result<BlockingSocket> last = fail(ErrorKind::kIo, "");
  for (int i = 0; i < 8 && (last || i == 0); ++i) {
    last = BlockingSocket::connect(address, soon(), &interrupted);
    if (last) queued.push_back(std::move(*last));
  }
  EXPECT_EQ(last.error().kind, ErrorKind::kClosed);
  ::close(server);
}

TEST(Tcp, ATakenPortIsNamedWithTheFix) {
  Server server;
  EventLoop loop("other");
  auto second = listen(loop, server.listener->address(), [](const std::shared_ptr<Connection>&) {});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().kind, ErrorKind::kExists);
  EXPECT_NE(second.error().message.find(server.listener->address().text() + " is taken"), std::string::npos);
  EXPECT_EQ(listen(loop, {"203.0.113.7", 0}, [](const std::shared_ptr<Connection>&) {}).error().kind,
            ErrorKind::kInvalid);
}

TEST(Tcp, BlockingReadsFramesAndTimesOut) {
  Server server;
  auto client = server.client();
  auto connection = server.connection();
  const auto send = [&](std::string_view bytes) {
    server.loop.call([&] {
      Payload payload;
      payload.append(to_buffer(as_bytes(bytes)));
      connection->send(std::move(payload));
    });
  };
  server.loop.call([&] { connection->start(std::make_shared<Collector>()); });
  send(std::string_view("\0\0\0\3abc", 7));
  EXPECT_EQ(as_text(client.read_frame(100, soon()).value()), "abc");
  EXPECT_EQ(client.read_frame(100, system_clock().now().mono + 1ms).error().kind, ErrorKind::kTimeout);
  send("GET ");
  EXPECT_EQ(client.read_frame(kMiB, soon()).error().kind, ErrorKind::kInvalid);
}

std::string framed(std::string_view body) {
  std::string out;
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(body.size() >> shift);
  return out.append(body);
}

TEST(FrameReader, CutsFramesHoweverTheBytesArrive) {
  std::vector<std::string> bodies{
      "", "x", std::string(100, 'a'), std::string(40'000, 'b'), std::string(3'000'000, 'c'), "end"};
  std::string stream;
  for (const auto& b : bodies) stream += framed(b);
  for (const Bytes step : {Bytes{1000}, Bytes{4096}, Bytes{70'000}, stream.size()}) {
    FrameReader reader(4 * kMiB);
    std::vector<std::string> found;
    for (std::string_view rest = stream; !rest.empty();) {
      const auto space = reader.space();
      ASSERT_FALSE(space.empty());
      const Bytes n = std::min({space.size(), rest.size(), step});
      std::memcpy(space.data(), rest.data(), n);
      reader.received(n);
      rest.remove_prefix(n);
      while (true) {
        auto frame = reader.next();
        ASSERT_TRUE(frame);
        if (!*frame) break;
        found.emplace_back(as_text((*frame)->view()));
      }
    }
    EXPECT_TRUE(found == bodies) << step;
    EXPECT_LE(reader.held(), 200 * kKiB);
  }
}

TEST(FrameReader, RefusesALengthAboveTheLimitWithoutMemory) {
  for (const std::string_view start : {std::string_view("GET / HTTP/1.1"), std::string_view("\x16\x03\x01\x02\0", 5),
                                       std::string_view("\xff\xff\xff\xff", 4)}) {
    FrameReader reader(100 * kMiB);
    std::memcpy(reader.space().data(), start.data(), start.size());
    reader.received(start.size());
    EXPECT_EQ(reader.next().error().kind, ErrorKind::kInvalid);
    EXPECT_EQ(as_text(reader.pending()), start);
    EXPECT_LE(reader.held(), 64 * kKiB);
  }
}

TEST(FrameReader, TakesMemoryOnlyAsBytesArrive) {
  FrameReader reader(100 * kMiB);
  const std::string_view start("\x06\0\0\0abc", 7);
  std::memcpy(reader.space().data(), start.data(), start.size());
  reader.received(start.size());
  EXPECT_FALSE(reader.next().value());
  EXPECT_FALSE(reader.space().empty());
  EXPECT_LE(reader.held(), 2 * kMiB) << "100 MB were only claimed";
  // Who has sent a big frame is trusted with the same again, not with more.
  FrameReader known(100 * kMiB);
  const auto feed = [&](Bytes n) {
    while (n > 0) {
      const auto space = known.space();
      const Bytes part = std::min<Bytes>(n, space.size());
      std::fill_n(space.begin(), part, std::byte{0});
      known.received(part);
      const auto frame = known.next().value();
      EXPECT_TRUE(!frame || frame->size() == 3u * kMiB);
      n -= part;
    }
  };
  const std::string_view three_mib("\0\x30\0\0", 4);
  for (int i = 0; i < 2; ++i) {
    std::memcpy(known.space().data(), three_mib.data(), three_mib.size());
    known.received(three_mib.size());
    EXPECT_FALSE(known.next().value());
    EXPECT_LE(known.held(), (i == 0 ? kMiB / 2 : 5 * kMiB / 4));
    feed(3 * kMiB);
  }
}

TEST(Address, ReadsWhatPeopleWrite) {
  EXPECT_EQ(parse_address("localhost:9092").value(), (Address{"localhost", 9092}));
  EXPECT_EQ(parse_address("[::1]:80").value().text(), "[::1]:80");
  EXPECT_EQ(parse_address(":0").value(), (Address{"127.0.0.1", 0}));
  EXPECT_EQ(parse_address("h", 9092).value().port, 9092);
  for (const char* wrong : {"", "h", "h:", "h:x", "h:70000", "::1", "[::1", "a b:1", "h:1:2", "h:-1"})
    EXPECT_FALSE(parse_address(wrong)) << wrong;
  EXPECT_EQ(parse_addresses("a:1, b:2").value().size(), 2u);
  EXPECT_FALSE(parse_addresses("a:1,,b:2"));
}

}  // namespace
}  // namespace weir::runtime
