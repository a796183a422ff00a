#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <future>
#include <memory>
#include <vector>

#include "http/client.h"
#include "http/router.h"
#include "http/server.h"
#include "runtime/process.h"

namespace weir::http {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

Handler say(const std::string& text) {
  return [text](const Request&) { return Response{.body = text}; };
}

TEST(Router, LiteralBeatsParameterAndPartsAreDecodedOneByOne) {
  Router router;
  router.add("GET", "/api/check/{group}", say("any"), nullptr);
  router.add("GET", "/api/check/all", say("all"), nullptr);
  router.add("GET", "/files/{name...}", say("file"), nullptr);
  EXPECT_EQ(router.find("GET", "/api/check/all").route->parts.back(), "all");
  EXPECT_EQ(router.find("GET", "/api/check/a%2Fb%20c").request.param("group"), "a/b c");
  EXPECT_EQ(router.find("HEAD", "/files/x/y.css").request.param("name"), "x/y.css");
  const auto query = router.find("GET", "/api/check/g?a=1+2&b&a=%7Bz%7D").request.query;
  EXPECT_EQ(query.at("a"), "{z}");
  EXPECT_EQ(query.at("b"), "");
}

TEST(Router, SaysWhatIsWrong) {
  Router router;
  router.add("GET", "/x", say(""), nullptr);
  router.add("POST", "/x", say(""), nullptr);
  EXPECT_EQ(router.find("DELETE", "/x").status, 405);
  EXPECT_EQ(router.find("DELETE", "/x").allow, "GET, POST");
  EXPECT_EQ(router.find("GET", "/x/y").status, 404);
  EXPECT_EQ(router.find("GET", "/%zz").status, 400);
  EXPECT_EQ(router.find("GET", "/%00").status, 400);
  EXPECT_EQ(router.find("GET", "http://x/").status, 400);
}

struct Served : testing::Test {
  Served() {
    ServerSettings settings;
    settings.max_body = 1000;
    settings.max_head = 2000;
    settings.read_timeout = milliseconds(200);
    settings.max_connections = 64;
    server.emplace(settings);
    server->route("GET", "/hello/{name}",
                  [](const Request& r) { return Response{.body = "hello " + r.param("name")}; });
    server->route("POST", "/echo", [](const Request& r) { return Response{.body = r.body}; });
    server->route("GET", "/broken", [](const Request&) -> Response { throw std::runtime_error("no luck"); });
    server->stream("/events", [this](const Request&, std::shared_ptr<Stream> s) { opened.set_value(std::move(s)); });
    server->serve_metrics([] { return std::string("weir_up 1\n"); });
    server->serve_health([this]() -> Result<void> {
      if (healthy) return {};
      return fail(ErrorKind::kUnavailable, "not yet");
    });
    address = *server->start();
  }
  std::promise<std::shared_ptr<Stream>> opened;
  std::atomic<bool> healthy = true;
  std::optional<Server> server;
  Address address;
};

/// A peer that speaks as rudely as the test wants.
class Peer {
 public:
  explicit Peer(const Address& address) : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in to{
        .sin_family = AF_INET, .sin_port = htons(address.port), .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_zero = {}};
    timeval patience{5, 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    EXPECT_EQ(connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
  }
  ~Peer() { close(fd_); }
  void say(std::string_view text) { send(fd_, text.data(), text.size(), MSG_NOSIGNAL); }
  /// Everything up to and including `mark`, or up to the end.
  std::string hear(std::string_view mark) {
    std::string text;
    char c = 0;
    while ((mark.empty() || text.find(mark) == std::string::npos) && recv(fd_, &c, 1, 0) == 1) text += c;
    return text;
  }

 private:
  int fd_;
};

TEST_F(Served, AnswersRoutesMetricsAndHealth) {
  EXPECT_EQ(get(address, "/hello/w%20x")->body, "hello w x");
  EXPECT_EQ(post(address, "/echo", "abc")->body, "abc");
  EXPECT_EQ(request(address, "HEAD", "/hello/x")->body, "");
  EXPECT_EQ(get(address, "/metrics")->body, "weir_up 1\n");
  EXPECT_THAT(get(address, "/metrics")->content_type, HasSubstr("version=0.0.4"));
  EXPECT_EQ(get(address, "/healthz")->status, 200);
  healthy = false;
  EXPECT_EQ(get(address, "/healthz")->status, 503);
  const auto broken = get(address, "/broken");
  EXPECT_EQ(broken->status, 500);
  EXPECT_EQ(broken->body, "{\"error\":\"/broken failed: no luck\"}\n");
}

TEST_F(Served, RefusesWhatIsTooLongOrNotHttp) {
  EXPECT_EQ(post(address, "/echo", std::string(5000, 'x'))->status, 413);
  EXPECT_EQ(get(address, "/" + std::string(5000, 'x'))->status, 431);
  Peer garbage(address);
  garbage.say("\x16\x03\x01\x02 tls hello\r\n\r\n");
  EXPECT_THAT(garbage.hear(""), HasSubstr("400"));
  Peer slow(address);  // Half a request, then nothing: cut off without an answer.
  slow.say("GET /hello/x HT");
  EXPECT_EQ(slow.hear(""), "");
}

TEST_F(Served, APageFromAnotherSiteMayNotPost) {
  Peer peer(address);
  peer.say("POST /echo HTTP/1.1\r\nHost: " + address.text() +
           "\r\nOrigin: http://evil.example\r\nContent-Length: 1\r\n\r\nx");
  EXPECT_THAT(peer.hear("\r\n\r\n"), HasSubstr("403"));
  for (const char* header : {"Sec-Fetch-Site: cross-site", "Sec-Fetch-Site: same-site", "Origin: null"}) {
    Peer foreign(address);
    foreign.say("POST /echo HTTP/1.1\r\nHost: " + address.text() + "\r\n" + header + "\r\nContent-Length: 1\r\n\r\nx");
    EXPECT_THAT(foreign.hear("\r\n\r\n"), HasSubstr("403")) << header;
  }
  Peer own(address);
  own.say("POST /echo HTTP/1.1\r\nHost: " + address.text() + "\r\nOrigin: http://" + address.text() +
          "\r\nContent-Length: 1\r\n\r\nx");
  EXPECT_THAT(own.hear("\r\n\r\n"), HasSubstr("200"));
}

TEST_F(Served, ANameThatOnlyPointsHereIsRefused) {
  Peer rebound(address);
  rebound.say("GET /hello/x HTTP/1.1\r\nHost: evil.example:" + std::to_string(address.port) + "\r\n\r\n");
  EXPECT_THAT(rebound.hear("\r\n\r\n"), HasSubstr("403"));
}

TEST(Host, OfAPageThatChangesSomethingIsANumberOrANameOfThisMachine) {
  ServerSettings settings;
  settings.host = "0.0.0.0";
  settings.names = {"logs.example"};
  Server server(settings);
  server.route("POST", "/echo", [](const Request& r) { return Response{.body = r.body}; });
  Address address = *server.start();
  address.host = "127.0.0.1";
  const auto answer = [&](const std::string& host, bool page) {
    Peer peer(address);
    const std::string at = host + ":" + std::to_string(address.port);
    peer.say("POST /echo HTTP/1.1\r\nHost: " + at + (page ? "\r\nOrigin: http://" + at : "") +
             "\r\nContent-Length: 1\r\n\r\nx");
    return peer.hear("\r\n").substr(9, 3);
  };
  EXPECT_EQ(answer("10.0.0.5", true), "200");
  EXPECT_EQ(answer("localhost", true), "200");
  EXPECT_EQ(answer("logs.example", true), "200");
  EXPECT_EQ(answer(runtime::host_name(), true), "200");
  EXPECT_EQ(answer("evil.example", true), "403");       // its name, pointed at this machine
  EXPECT_EQ(answer("anything.example", false), "200");  // no page: a program knows whom it asks
}

TEST_F(Served, KeepsAConnectionForSeveralRequests) {
  Peer peer(address);
  peer.say("GET /hello/a HTTP/1.1\r\nHost: localhost\r\n\r\nGET /hello/b HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_THAT(peer.hear("hello a"), HasSubstr("hello a"));
  EXPECT_THAT(peer.hear("hello b"), HasSubstr("hello b"));
}

TEST_F(Served, OpenStreamsHoldNoThread) {
  std::vector<std::unique_ptr<Peer>> peers;
  std::vector<std::shared_ptr<Stream>> streams;
  for (int i = 0; i < 20; ++i) {
    opened = {};
    auto future = opened.get_future();
    peers.push_back(std::make_unique<Peer>(address));
    peers.back()->say("GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n");
    streams.push_back(future.get());
  }
  EXPECT_EQ(get(address, "/metrics")->status, 200);
  for (int i = 0; i < 20; ++i) {
    EXPECT_TRUE(streams[i]->send("status", "one\ntwo"));
    EXPECT_THAT(peers[i]->hear("two\n\n"), HasSubstr("event: status\ndata: one\ndata: two\n\n"));
  }
  streams[0]->close();
  peers[0]->hear("");  // Ends.
  EXPECT_FALSE(streams[0]->send("status", "x"));
}

TEST_F(Served, AReaderThatDoesNotReadIsCutOff) {
  auto future = opened.get_future();
  Peer peer(address);
  peer.say("GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const auto stream = future.get();
  const std::string event(100 * kKiB, 'x');
  int sent = 0;
  while (sent < 10'000 && stream->send("status", event)) ++sent;
  EXPECT_LT(sent, 10'000);
  EXPECT_TRUE(stream->closed());
}

TEST_F(Served, WhoeverWaitsLongestMakesRoom) {
  auto future = opened.get_future();
  Peer events(address);
  events.say("GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n");
  events.hear("\r\n\r\n");
  const auto stream = future.get();
  std::vector<std::unique_ptr<Peer>> silent;
  for (int i = 0; i < 63; ++i) silent.push_back(std::make_unique<Peer>(address));
  silent.back()->say("GET /hello");
  for (int i = 0; i < 100; ++i) {
    const auto answer = get(address, "/hello/you");
    ASSERT_TRUE(answer) << answer.error().message;
    EXPECT_EQ(answer->body, "hello you");
  }
  EXPECT_TRUE(stream->closed());
  EXPECT_EQ(events.hear(""), "");
}

TEST_F(Served, StopsWithConnectionsOpen) {
  auto future = opened.get_future();
  Peer events(address);
  events.say("GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const auto stream = future.get();
  Peer idle(address);
  idle.say("GET /hello/a HTTP/1.1\r\nHost: localhost\r\n\r\n");
  idle.hear("hello a");
  server->stop();
  EXPECT_TRUE(stream->closed());
  EXPECT_EQ(idle.hear(""), "");
  EXPECT_EQ(get(address, "/metrics").error().kind, ErrorKind::kUnavailable);
  server.reset();
  EXPECT_FALSE(stream->send("status", "late"));  // A stream may outlive its server.
}

TEST_F(Served, ATakenPortIsNamedOrTheNextOneTaken) {
  ServerSettings settings;
  settings.port = address.port;
  Server second(settings);
  const auto failed = second.start();
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().kind, ErrorKind::kExists);
  EXPECT_THAT(failed.error().message, HasSubstr(address.text()));
  settings.next_free_port = true;
  Server third(settings);
  const auto started = third.start();
  ASSERT_TRUE(started) << started.error().message;
  EXPECT_GT(started->port, address.port);
  settings.host = "not an address";
  EXPECT_EQ(Server(settings).start().error().kind, ErrorKind::kInvalid);
}

TEST(Client, ASilentServerCostsTheTimeoutAndIsNamed) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in at{.sin_family = AF_INET, .sin_port = 0, .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_zero = {}};
  socklen_t size = sizeof at;
  bind(fd, reinterpret_cast<sockaddr*>(&at), size);
  listen(fd, 1);
  getsockname(fd, reinterpret_cast<sockaddr*>(&at), &size);
  const Address address{"127.0.0.1", ntohs(at.sin_port)};
  const auto reply = get(address, "/x", milliseconds(50));
  EXPECT_EQ(reply.error().kind, ErrorKind::kTimeout);
  EXPECT_THAT(reply.error().message, HasSubstr(address.text()));
  close(fd);
}

}  // namespace
}  // namespace weir::http
