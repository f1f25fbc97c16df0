// An OpenAI-compatible server: the model, the scheduler of its steps, the API, on three threads.
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
  std::vector<std::string> names;     // the model's, in requests and answers; at least one
  std::vector<std::string> api_keys;  // empty: none is asked for
  int64_t connections = 128;
  std::vector<NamedAdapter> adapters;  // loaded before requests are taken
  bool runtime_adapters = false;       // requests may load and unload adapters
  std::filesystem::path adapter_root;  // empty: from any folder; else from those below it
  HttpOrigins origins;                 // of pages that may call
  std::string chat_template;           // in place of the model's; empty: none
  // A line for each request, for a log; may be empty. Called on the server's threads.
  std::function<void(const std::string&)> log;
};

class Server {
 public:
  // What the options ask of the heap beside the engine; goes into ServingOptions before planning.
  static void book(const InferenceOptions& options, const ServerOptions& server, ServingOptions& serving);

  // Listens: /health answers 503 until the model is there. Throws Error(run) where the address is taken.
  Server(const ServerOptions& options, const ServingPlan& plan);
  ~Server();

  std::string url() const;
  // Steps the model on the calling thread, the one that made it, until `should_end` gives true and what runs has ended:
  // then new requests are refused. `should_end` is asked ten times a second and more; so is `should_reload`, where
  // there is one: true means that the adapters are to be read again from their folders. Throws Error for an adapter of
  // the options that cannot be loaded.
  void run(ServedModel& model, const std::function<bool()>& should_end,
           const std::function<bool()>& should_reload = {});

 private:
  class Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace headroom
