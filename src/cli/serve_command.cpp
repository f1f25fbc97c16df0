#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "arguments/serving_options.h"
#include "arguments/vllm_options.h"
#include "base/error.h"
#include "cli/command.h"
#include "cli/messages.h"
#include "cli/plan_serve.h"
#include "cli/refuse.h"
#include "cli/signals.h"
#include "engine/serving.h"
#include "serve/given_template.h"
#include "serve/server.h"

namespace headroom {
namespace {

struct ServeArguments {
  ServingArguments serving;
  ServerOptions server;
  std::string chat_template, allowed_origins;
  VllmOptions vllm;
};

void add_server_options(CLI::App& app, ServeArguments& a) {
  constexpr const char* kGroup = "Server";
  ServerOptions& s = a.server;
  const auto add = [&](const char* name, auto& value, const char* help) {
    return app.add_option(name, value, help)->group(kGroup);
  };
  add("--host", s.address.host, "address to listen on")->capture_default_str();
  add("--port", s.address.port, "port to listen on; 0: a free one, which is printed")->capture_default_str();
  add("--uds", s.address.unix_path, "listen on this Unix socket instead");
  add("--api-key", s.api_keys,
      "key that clients must send (Authorization: Bearer KEY); also read from HEADROOM_API_KEY");
  add("--served-model-name", s.names, "the model's name in requests, and aliases (default: the folder's name)");
  add("--max-connections", s.connections, "connections open at once; more are answered with 503")
      ->capture_default_str();
  app.add_flag("--allow-runtime-lora", s.runtime_adapters,
               "let requests load adapters from any folder; also set by VLLM_ALLOW_RUNTIME_LORA_UPDATING")
      ->group(kGroup);
  add("--lora-root", s.adapter_root, "let requests load adapters from folders below this one");
  add("--chat-template", a.chat_template, "a file with a chat template, or its text, in place of the model's");
  add("--allowed-origins", a.allowed_origins,
      "origins whose pages may call (CORS): a JSON list, '[\"https://a.example\", \"http://localhost:3000\"]', or "
      "'[\"*\"]' for all; default: none");
  add_vllm_options(app, a.vllm);
}

bool is_true(const std::string& value) { return value == "1" || value == "true" || value == "True"; }

void check_adapter_names(const ServerOptions& server) {
  for (const NamedAdapter& adapter : server.adapters)
    if (std::find(server.names.begin(), server.names.end(), adapter.name) != server.names.end())
      throw Error(ErrorKind::usage, fmt::format("--lora-modules {} is the name of the model", adapter.name),
                  "give another name, or --served-model-name");
}

void check_server(ServeArguments& a) {
  if (a.server.address.port < 0 || a.server.address.port > 65535)
    throw Error(ErrorKind::usage, fmt::format("--port {} is out of range", a.server.address.port),
                "give a port from 0 to 65535");
  if (a.server.connections < 1 || a.server.connections > 65536)
    throw Error(ErrorKind::usage, fmt::format("--max-connections {} is out of range", a.server.connections),
                "give a number from 1 to 65536");
  if (!a.allowed_origins.empty()) a.server.origins = read_origins(a.allowed_origins);
  if (!a.chat_template.empty()) a.server.chat_template = given_chat_template(a.chat_template);
  if (const char* key = std::getenv("HEADROOM_API_KEY"); key && *key) a.server.api_keys.emplace_back(key);
  const char* const runtime = std::getenv("VLLM_ALLOW_RUNTIME_LORA_UPDATING");
  a.server.runtime_adapters |= !a.server.adapter_root.empty() || (runtime && is_true(runtime));
  a.server.adapters = a.serving.serving.lora.adapters;
  if (a.server.names.empty()) {
    const std::filesystem::path model = std::filesystem::absolute(a.serving.options.model).lexically_normal();
    a.server.names.push_back(model.has_filename() ? model.filename().string()
                                                  : model.parent_path().filename().string());
  }
}

int run_serve(ServeArguments& a) {
  print_remark(resolve_serving(a.serving));
  check_server(a);
  const Notes notes = a.serving.quiet ? Notes() : Notes(print_note);
  for (const std::string& sentence : explain_vllm_options(a.vllm))
    if (notes) notes(sentence);
  const InferenceOptions& options = a.serving.options;
  check_adapter_names(a.server);
  Server::book(options, a.server, a.serving.serving);
  const ServingPlan plan = plan_serving(options, a.serving.serving, notes);
  if (!plan.plan.feasible) return refuse(plan.plan);
  if (!a.serving.quiet) a.server.log = [](const std::string& line) { write_stderr(line + "\n"); };
  const RunControl& control =
      install_signal_handlers("\nfinishing the requests in progress, then exiting; a second signal exits at once\n");
  std::atomic<bool>& reload = install_reload_handler();
  ServingRoom room(options, plan, notes);  // reports a full disk before the socket is open
  Server server(a.server, plan);
  fmt::print("{}listening on {}\n", serving_text(plan), server.url());
  std::fflush(stdout);
  ServedModel model(std::move(room));
  server.run(
      model, [&] { return control.stop_signal != 0; }, [&] { return reload.exchange(false); });
  return control.stop_signal == SIGINT ? 128 + SIGINT : 0;
}

}  // namespace

Command serve_command() {
  return {"serve", "serve a model to OpenAI clients inside a memory budget", [](CLI::App& app) {
            auto a = std::make_shared<ServeArguments>();
            add_serving_options(app, a->serving);
            add_server_options(app, *a);
            return [a] { return run_serve(*a); };
          }};
}

}  // namespace headroom
