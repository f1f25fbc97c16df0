// Which facts that nobody gave would decide: found by answering with both ends of what each may be.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "doctor/answer/request.h"

namespace headroom::doctor {

// The diagnosis of the same inputs under another request.
using Rediagnose = std::function<Diagnosis(const Request&)>;

// At most three, the most deciding first: those whose answer would change the first remedy, then those that would
// change whether the job or a set of remedies is said to fit. Facts that the inputs or the request state are never
// asked for.
std::vector<Question> deciding_questions(const Request& request, const Case& incident, const Diagnosis& diagnosis,
                                         const Rediagnose& rediagnose);

// The request with the answer in it, as if `question.option` had been given. Throws Error(usage) for what the option
// would not take; names (a model, a GPU) are checked when the request is answered.
Request with_answer(Request request, const Question& question, const std::string& text);

// "2.6": Throws Error(usage) where it is none.
Version parse_version(const std::string& text);

}  // namespace headroom::doctor
