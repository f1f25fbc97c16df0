#include "serve/embedding_request.h"

#include "base/error.h"
#include "formats/json.h"
#include "serve/api_error.h"
#include "serve/json_fields.h"

namespace headroom {
namespace {

constexpr int64_t kMostInputs = 2048;

}  // namespace

EmbeddingRequest read_embedding_request(const OrderedJson& body, int64_t vocab, int64_t hidden) {
  const JsonFields fields(body);
  EmbeddingRequest request;
  request.model = fields.text("model").value_or("");
  request.inputs = read_prompts(fields, "input", vocab, kMostInputs);
  const std::string format = fields.text("encoding_format").value_or("float");
  request.base64 = format == "base64";
  if (!request.base64 && format != "float") fields.refuse("encoding_format", "must be float or base64");
  request.dimensions = fields.integer("dimensions", 1, hidden).value_or(hidden);
  return request;
}

Pooling model_pooling(const std::filesystem::path& model, bool encoder) {
  const std::filesystem::path file = model / "1_Pooling" / "config.json";
  std::error_code none;
  if (!std::filesystem::is_regular_file(file, none)) return encoder ? Pooling::mean : Pooling::last;
  Json config;
  try {
    config = read_json(file, int64_t{1} << 16);
  } catch (const Error& error) {
    throw ApiError(400, error.what());
  }
  const auto says = [&](const char* key) { return config.is_object() && config.value(key, Json()) == Json(true); };
  if (says("pooling_mode_mean_tokens")) return Pooling::mean;
  if (says("pooling_mode_lasttoken")) return Pooling::last;
  if (encoder && says("pooling_mode_cls_token")) return Pooling::first;
  throw ApiError(400, encoder ? "the model's 1_Pooling/config.json asks for none of the mean, the last token and the "
                                "first (CLS): serve a model that does, or remove the file for the mean"
                              : "the model's 1_Pooling/config.json asks for neither the mean nor the last token: serve "
                                "a model that does, or remove the file for the last token's");
}

}  // namespace headroom
