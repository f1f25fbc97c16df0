// Sockets with Asio around HttpSession. Each connection waits until its socket is ready and then reads into one buffer
// that all connections share, so that an idle connection holds none. Callbacks wait for reading and writing at the same
// time; coroutines would need two per connection and a channel between them.
#include "serve/http_server.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>

#include <array>
#include <atomic>
#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <deque>
#include <random>
#include <set>
#include <utility>

#include "serve/http_listener.h"
#include "serve/http_outbox.h"
#include "serve/http_session.h"

namespace headroom {
namespace {

namespace asio = boost::asio;
using Protocol = asio::generic::stream_protocol;
using SocketError = boost::system::error_code;

constexpr size_t kTurnedAway = 64;  // refused connections that have their answer and are not closed yet
constexpr int kReadsInARow = 8;     // of one connection, before it is the others' turn

// Exchanges may keep it alive longer than the server.
struct HttpLoop {
  asio::io_context io;
  std::atomic<bool> ended{false};
};

std::string random_prefix() {
  std::random_device source;
  return fmt::format("req-{:08x}{:08x}", source(), source());
}

HttpSession::Time clock_now() { return std::chrono::steady_clock::now(); }

// A socket and its session; owned by the server and by pending operations on the socket.
class HttpConnection : public std::enable_shared_from_this<HttpConnection> {
 public:
  HttpConnection(Protocol::socket socket, std::array<char, 64 << 10>& scratch, std::function<void()> changed)
      : socket_(std::move(socket)), scratch_(scratch), changed_(std::move(changed)) {}

  void start(std::unique_ptr<HttpSession> session) {
    session_ = std::move(session);
    pump();
  }
  HttpSession& session() { return *session_; }
  bool is_open() const { return socket_.is_open(); }

  // Call after anything that may have changed the session.
  void pump() {
    if (!socket_.is_open()) return;
    write();
    if (session_->closed()) return close();
    if (session_->lingering() && !std::exchange(shut_, true)) {
      SocketError ignored;
      socket_.shutdown(Protocol::socket::shutdown_send, ignored);
    }
    wait_to_read();
  }

  void tick(HttpSession::Time now) {
    session_->tick(now);
    if (!session_->closed() && session_->wanted() == 0 && has_hung_up()) session_->left();
    pump();
  }

  // Reads what has arrived before it closes: unread bytes would reset the connection, and the client would lose the
  // answer.
  void read_and_close() {
    if (socket_.is_open()) read();
    close();
  }

  void close() {
    if (!socket_.is_open()) return;
    SocketError ignored;
    socket_.close(ignored);
    session_->left();
    changed_();
  }

 private:
  bool has_hung_up() {
    pollfd look{socket_.native_handle(), POLLRDHUP, 0};
    return ::poll(&look, 1, 0) > 0 && (look.revents & (POLLRDHUP | POLLHUP | POLLERR));
  }

  void write() {
    while (session_->has_output() && !writing_) {
      const auto parts = session_->output();
      const std::array<asio::const_buffer, 3> buffers = {asio::buffer(parts[0]), asio::buffer(parts[1]),
                                                         asio::buffer(parts[2])};
      SocketError error;
      const size_t bytes = socket_.write_some(buffers, error);
      if (error == asio::error::would_block) return wait_to_write();
      if (error) return session_->left();
      session_->sent(bytes, clock_now());
    }
  }

  void wait_to_write() {
    writing_ = true;
    socket_.async_wait(Protocol::socket::wait_write, [self = shared_from_this()](SocketError error) {
      self->writing_ = false;
      if (!error) self->pump();
    });
  }

  void wait_to_read() {
    if (reading_ || session_->wanted() == 0) return;
    reading_ = true;
    socket_.async_wait(Protocol::socket::wait_read, [self = shared_from_this()](SocketError error) {
      self->reading_ = false;
      if (error || !self->socket_.is_open()) return;
      self->read();
      self->pump();
    });
  }

  void read() {
    for (int turn = 0; turn < kReadsInARow && !session_->closed(); ++turn) {
      const size_t most = std::min(scratch_.size(), static_cast<size_t>(session_->wanted()));
      if (most == 0) return;
      SocketError error;
      const size_t bytes = socket_.read_some(asio::buffer(scratch_.data(), most), error);
      if (error == asio::error::would_block) return;
      if (error) return session_->left();
      session_->received({scratch_.data(), bytes}, clock_now());
    }
  }

  Protocol::socket socket_;
  std::array<char, 64 << 10>& scratch_;
  const std::function<void()> changed_;
  std::unique_ptr<HttpSession> session_;
  bool reading_ = false;
  bool writing_ = false;
  bool shut_ = false;
};

}  // namespace

class HttpServer::Parts {
 public:
  Parts(const HttpAddress& address, const HttpLimits& limits, HttpHandler handler)
      : listener_(address),
        shared_(std::make_shared<HttpShared>(limits)),
        handler_(std::move(handler)),
        acceptor_(loop_->io, Protocol(listener_.family(), listener_.family() == AF_UNIX ? 0 : IPPROTO_TCP),
                  listener_.release()),
        sweep_(loop_->io),
        end_(loop_->io) {
    acceptor_.non_blocking(true);
  }

  ~Parts() { finish(); }

  const std::string& url() const { return listener_.url(); }
  int64_t open_connections() const { return open_.load(); }

  void run() {
    accept();
    sweep();
    loop_->io.run();
    finish();
  }

  void drain(double seconds) {
    asio::post(loop_->io, [this, seconds] {
      if (std::exchange(draining_, true)) return;
      close_listener();
      for (const auto& connection : copy_of_connections()) {
        connection->session().drain();
        connection->pump();
      }
      stop_if_drained();
      end_.expires_after(
          std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(seconds)));
      end_.async_wait([this](SocketError error) {
        if (!error) loop_->io.stop();
      });
    });
  }

  void stop() { loop_->io.stop(); }

 private:
  std::vector<std::shared_ptr<HttpConnection>> copy_of_connections() const {
    return {connections_.begin(), connections_.end()};
  }

  void close_listener() {
    SocketError ignored;
    acceptor_.close(ignored);
    listener_.remove_path();
  }

  // Everything is closed. Runs the cancelled operations, so that nothing keeps the loop's memory.
  void finish() {
    close_listener();
    sweep_.cancel();
    end_.cancel();
    for (const auto& connection : copy_of_connections()) connection->close();
    connections_.clear();
    turned_away_.clear();
    loop_->ended = true;
    loop_->io.restart();
    loop_->io.poll();
  }

  void accept() {
    accepting_ = true;
    acceptor_.async_accept([this](SocketError error, Protocol::socket socket) {
      accepting_ = false;
      if (!acceptor_.is_open()) return;
      if (!error) admit(std::move(socket));
      // Out of descriptors or memory: the connection stays in the system's queue until the next sweep.
      if (error && error != asio::error::connection_aborted) return;
      accept();
    });
  }

  void admit(Protocol::socket socket) {
    SocketError error;
    socket.non_blocking(true, error);
    if (error) return;
    const int yes = 1;
    ::setsockopt(socket.native_handle(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
    const auto limit = static_cast<size_t>(shared_->limits.connections);
    const bool beyond = connections_.size() - turned_away_.size() >= limit;
    if (beyond) make_room_to_refuse();
    const std::string peer = http_peer_of(socket.native_handle());
    const auto connection = std::make_shared<HttpConnection>(std::move(socket), scratch_, [this] { forget_soon(); });
    auto session = std::make_unique<HttpSession>(shared_, waker_of(connection), &handler_, peer,
                                                 fmt::format("{}-{:x}", id_prefix_, ++accepted_), clock_now());
    if (beyond)
      session->refuse(
          {503, "connections_full", fmt::format("{} connections are open, which is the limit; try again soon", limit)},
          clock_now());
    connections_.insert(connection);
    if (beyond) turned_away_.push_back(connection);
    open_ = static_cast<int64_t>(connections_.size());
    connection->start(std::move(session));
  }

  // They already have their answer in the socket; they stay open for clients that are still sending.
  void make_room_to_refuse() {
    if (turned_away_.size() < kTurnedAway) return;
    turned_away_.front()->read_and_close();
    forget_closed();
  }

  HttpWaker waker_of(const std::shared_ptr<HttpConnection>& connection) {
    const std::weak_ptr<HttpConnection> weak = connection;
    const std::shared_ptr<HttpLoop> loop = loop_;
    return {[loop, weak] {
              asio::post(loop->io, [weak] {
                const auto alive = weak.lock();
                if (!alive || !alive->is_open()) return;
                alive->session().woken(clock_now());
                alive->pump();
              });
            },
            [loop](std::function<void()> call) {
              if (loop->ended) return call();
              asio::dispatch(loop->io, std::move(call));
            }};
  }

  // Closed connections are removed here later, not while their own code runs.
  void forget_soon() {
    if (!std::exchange(closed_, true)) asio::post(loop_->io, [this] { forget_closed(); });
  }

  void forget_closed() {
    closed_ = false;
    const auto is_closed = [](const auto& connection) { return !connection->is_open(); };
    std::erase_if(connections_, is_closed);
    std::erase_if(turned_away_, is_closed);
    open_ = static_cast<int64_t>(connections_.size());
    stop_if_drained();
  }

  void stop_if_drained() {
    if (draining_ && connections_.empty()) loop_->io.stop();
  }

  std::chrono::steady_clock::duration sweep_period() const {
    const HttpLimits& limits = shared_->limits;
    const double least =
        std::min({limits.idle_seconds, limits.request_seconds, limits.write_seconds, limits.ping_seconds, 2.0});
    return std::chrono::duration_cast<std::chrono::steady_clock::duration>(
        std::chrono::duration<double>(std::max(0.01, least / 4)));
  }

  void sweep() {
    sweep_.expires_after(sweep_period());
    sweep_.async_wait([this](SocketError error) {
      if (error) return;
      const HttpSession::Time now = clock_now();
      for (const auto& connection : copy_of_connections()) connection->tick(now);
      if (acceptor_.is_open() && !accepting_) accept();
      sweep();
    });
  }

  const std::shared_ptr<HttpLoop> loop_ = std::make_shared<HttpLoop>();
  HttpListener listener_;
  const std::shared_ptr<HttpShared> shared_;
  const HttpHandler handler_;
  const std::string id_prefix_ = random_prefix();
  std::array<char, 64 << 10> scratch_;
  asio::basic_socket_acceptor<Protocol> acceptor_;
  asio::steady_timer sweep_, end_;
  std::set<std::shared_ptr<HttpConnection>> connections_;
  std::deque<std::shared_ptr<HttpConnection>> turned_away_;  // refused connections, the oldest first
  std::atomic<int64_t> open_{0};
  int64_t accepted_ = 0;
  bool accepting_ = false;
  bool draining_ = false;
  bool closed_ = false;  // some connection is closed; forget_closed() will find it
};

HttpServer::HttpServer(const HttpAddress& address, const HttpLimits& limits, HttpHandler handler)
    : parts_(std::make_unique<Parts>(address, limits, std::move(handler))) {}
HttpServer::~HttpServer() = default;
std::string HttpServer::url() const { return parts_->url(); }
void HttpServer::run() { parts_->run(); }
void HttpServer::drain(double seconds) { parts_->drain(seconds); }
void HttpServer::stop() { parts_->stop(); }
int64_t HttpServer::open_connections() const { return parts_->open_connections(); }

}  // namespace headroom
