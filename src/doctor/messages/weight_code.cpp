#include "doctor/messages/weight_code.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace headroom::doctor {
namespace {

bool of_identifier(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool upper_case(char c) { return std::isupper(static_cast<unsigned char>(c)) != 0; }

// Calls on a model that bring its weights somewhere, or change their type.
constexpr std::array<std::string_view, 6> kMoves = {".cuda(",     ".to(",    ".half(",
                                                    ".bfloat16(", ".float(", ".load_state_dict("};
// Calls that read weights, whatever they are called on.
constexpr std::array<std::string_view, 5> kReads = {".from_pretrained(", "torch.load(", "load_checkpoint(",
                                                    "load_checkpoint_and_dispatch(", "load_pretrained("};
// What models are called; also as a part of a longer name ("teacher_model", "net_g").
constexpr std::array<std::string_view, 18> kModelNames = {
    "model",         "net",       "unet",     "vae",        "transformer", "encoder",
    "decoder",       "generator", "backbone", "pipeline",   "network",     "text_encoder",
    "discriminator", "llm",       "denoiser", "classifier", "module",      "pipe"};
constexpr std::array<std::string_view, 7> kMakes = {"Parameter(",   "nn.Linear(",  "nn.Embedding(", "nn.Conv",
                                                    "torch.empty(", "Linear(self", "Embedding("};

bool model_name(std::string_view name) {
  // "network_input" is none, "input_model" is one: the last part of the name decides.
  return std::any_of(kModelNames.begin(), kModelNames.end(), [&](std::string_view model) {
    if (name == model) return true;
    const bool last = name.ends_with(model) && name[name.size() - model.size() - 1] == '_';
    const bool numbered = name.starts_with(model) && name.size() <= model.size() + 2;  // "model1", "net_g", "netG"
    return last || numbered;
  });
}

// The bracket that the one at `close` closes; npos if there is none.
size_t opening_of(std::string_view code, size_t close) {
  int depth = 0;
  for (size_t at = close + 1; at-- > 0;) {
    if (code[at] == ')') ++depth;
    if (code[at] == '(' && --depth == 0) return at;
  }
  return std::string_view::npos;
}

// The identifier that ends at `end`.
std::string_view identifier_before(std::string_view code, size_t end) {
  size_t begin = end;
  while (begin > 0 && of_identifier(code[begin - 1])) --begin;
  return code.substr(begin, end - begin);
}

// What the call at `dot` is made on: a model by its name, or an object of a class that was just made. Calls in between
// (".half().cuda()") are passed over.
bool called_on_a_model(std::string_view code, size_t dot) {
  if (dot == 0 || code[dot - 1] != ')') return model_name(identifier_before(code, dot));
  const size_t open = opening_of(code, dot - 1);
  if (open == std::string_view::npos) return false;
  const std::string_view called = identifier_before(code, open);
  const size_t before = open - called.size();
  const bool method = before > 0 && code[before - 1] == '.';
  if (called.empty()) return false;
  if (method && !upper_case(called.front())) return called_on_a_model(code, before - 1);
  return upper_case(called.front()) && !called.ends_with("Tensor") && called != "Variable" && called != "Data" &&
         called != "Batch";
}

}  // namespace

bool moves_weights(std::string_view code) {
  for (const std::string_view other : {"optim", "save("})
    if (code.find(other) != std::string_view::npos) return false;
  for (const std::string_view read : kReads)
    if (code.find(read) != std::string_view::npos) return true;
  for (const std::string_view move : kMoves)
    for (size_t at = code.find(move); at != std::string_view::npos; at = code.find(move, at + 1))
      if (called_on_a_model(code, at)) return true;
  return false;
}

bool makes_weights(std::string_view code) {
  return std::any_of(kMakes.begin(), kMakes.end(),
                     [&](std::string_view make) { return code.find(make) != std::string_view::npos; });
}

}  // namespace headroom::doctor
