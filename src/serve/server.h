// An OpenAI-compatible server with three threads: the HTTP server, a worker, and the model's steps.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/serving.h"
#include "serve/http_server.h"
#include "serve/text_encoder.h"

namespace headroom {

struct ServerOptions {
  HttpAddress address;
  std::vector<std::string> names;     // the model's, for requests and answers; at least one
  std::vector<std::string> api_keys;  // empty: no key is required
  int64_t connections = 128;
  std::vector<NamedAdapter> adapters;  // loaded before requests are accepted
  bool runtime_adapters = false;       // requests may load and unload adapters
  std::filesystem::path adapter_root;  // adapters must be in a folder below it; empty: in any folder
  HttpOrigins origins;                 // of pages that may call
  std::string chat_template;           // replaces the model's; empty: it does not
  // Gets a line per request, for a log; may be empty. Called on the server's threads.
  std::function<void(const std::string&)> log;
};

class Server {
 public:
  // Adds the heap that the options need besides the engine to ServingOptions, before planning.
  static void book(const InferenceOptions& options, const ServerOptions& server, ServingOptions& serving);

  // Starts to listen: /health answers 503 until the model is loaded. Throws Error(run) when the address is in use.
  Server(const ServerOptions& options, const ServingPlan& plan);
  ~Server();

  std::string url() const;
  // Steps the model on the calling thread, which must be the one that created it, until `should_end` returns true. New
  // requests are then refused and running ones finish. `should_end` is called at least ten times a second, and so is
  // `should_reload`, if given: true asks for the adapters to be read again from their folders. Throws Error for an
  // adapter of the options that cannot be loaded.
  void run(ServedModel& model, const std::function<bool()>& should_end,
           const std::function<bool()>& should_reload = {});

 private:
  class Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace headroom
