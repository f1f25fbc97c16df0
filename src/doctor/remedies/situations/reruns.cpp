// What an earlier run, model or request left on the device, and devices that are filled unequally.
#include "doctor/remedies/situations/conditions.h"
#include "doctor/remedies/situations/situation.h"
#include "doctor/remedies/told_growth.h"

namespace headroom::doctor {
namespace {

using enum Sign::In;

bool pytorch_on_device(const CaseView& view) { return on_device(view) && view.reinforcement_library().empty(); }
bool trained_on_several(const CaseView& view) { return training_on_device(view) && !view.serving(); }
constexpr std::string_view kResumes =
    "when resuming|after resuming|resumed model|resume training|resuming training|loading the checkpoint|loading a "
    "checkpoint|继续训练|恢复训练|断点续训";
bool predicting(const CaseView& view) {
  return predicting_on_device(view) && !view.training() && !speaks_of_diffusion(view);
}

// What a checkpoint left behind is in this process.
bool of_an_earlier_run(const CaseView& view) {
  return pytorch_on_device(view) && view.story().at(ToldStage::resuming).empty() && view.log_says(kResumes).empty();
}

constexpr std::string_view kRunAgain =
    "second time i run|run it a second time|run it again|run the cell again|run the same cell|rerun the|re-run the|"
    "running the cell again|when i run again|restart the kernel|restart my kernel|restarting the kernel|restart kernel|"
    "再次运行|第二次运行|重新运行|再跑一次|再跑就|重启kernel|重启内核|重启 kernel|もう一度実行|再実行|カーネルを再起動|"
    "2回目の実行|二回目";
constexpr std::string_view kOneAfterAnother =
    "optuna|hyperparameter search|hyperparameter tuning|grid search|gridsearch|wandb sweep|ray tune|k-fold|kfold|"
    "k fold|passing experiment|each experiment|every experiment|each trial|every trial|every fit|each fit|-fold "
    "cross|second fold|next fold|each fold|cross validation|cross-validation|several models|many models|"
    "next model|second model|one model after|models in a loop|models one by one|交叉验证|五折|十折|第二折|超参搜索|"
    "网格搜索|多个模型|下一个模型|交差検証|ハイパーパラメータ探索|複数のモデル";
constexpr std::string_view kOfTheDead =
    "no running processes|no process found|no process is|no processes|without any process|zombie|still occupied|still "
    "in use after|after ctrl|after i killed|after killing|after stopping|after the program exit|after it crashed|"
    "僵尸进程|没有进程|仍然占用|还被占用|一直被占用|被占用|残ったまま|占有されたまま";
// Memory that is not given back is a dead run's beside one of these, else that of a program that keeps it.
constexpr std::string_view kEnded =
    "exit|kill|ctrl|crash|stopped|stopping|stop the|interrupt|finish|ended|closed|closing|terminat|quit|process "
    "is|退出|"
    "结束|关闭|停止|停掉|中断|终止|杀|终了|終了|止め";
constexpr std::string_view kSharedMachine =
    "labmate|uses the same gpu|sharing the gpu|share the gpu|same time on one gpu|same time on the same gpu|another "
    "job|"
    "another training|other jobs|两个程序|同时跑|同时训练|跑了两个|同時に|other users|other people|another "
    "user|someone else|somebody else|shared server|server is shared|shared "
    "machine|colleague|"
    "别人的程序|其他人|别人在用|有人在用|实验室服务器|共用服务器|他の人|他のユーザ|共有サーバ";
constexpr std::string_view kFirstDevice =
    "gpu 0 uses more|gpu0 uses more|more memory on gpu 0|more memory than the other|more than the other gpu|"
    "more than the others|processes on gpu 0|processes on gpu0|only gpu 0|only on gpu 0|gpu:0 only|gpu 0 has more|"
    "first gpu uses more|unbalanced|imbalance|0号卡|0卡|卡0|gpu0占用|gpu 0占用|主卡|第一张卡|显存不均|显存占用不均|"
    "负载不均|不均衡|gpu0だけ|gpu 0だけ|偏り|偏って";
constexpr std::string_view kEachRequest =
    "every image|each video|every video|each request|every request|per request|each inference|every inference|after "
    "each prediction|each call|every call|"
    "after every image|each image|every prediction|several requests|many requests|after some requests|每次请求|"
    "每次推理|每次预测|每次调用|多次调用|多次请求|请求多了|连续推理|推理多次|リクエストのたび|リクエストごと|"
    "推論のたび|"
    "推論ごと|呼び出すたび";
constexpr std::string_view kGrowing =
    "increas|grow|rise|accumulat|leak|piles up|until|不断|越来越|一直增|一直涨|逐渐|增长|增加|上涨|累积|累计|最后|増え|"
    "増加|徐々に|リーク";

// A sentence that says that memory is not given back after an end.
Evidence left_by_a_run_that_ended(const CaseView& view) {
  std::string_view kept;
  each_sentence(beginning(view), [&](std::string_view sentence) {
    if (!any_word(sentence, kEnded).empty()) kept = any_word(sentence, kNotGivenBack);
    return !kept.empty();
  });
  return kept.empty() ? Evidence{} : Evidence{0.86, "`" + std::string(kept) + "` after an end, in the log"};
}

Evidence growing_by_request(const CaseView& view) {
  const std::string_view each = view.log_says(kEachRequest), grows = view.log_says(kGrowing);
  constexpr std::string_view kAlone =
      "keeps increasing|keeps growing|増え続け|一直增加|一直在增加|一直在涨|一直涨|不断增加|持续增加|越来越|memory "
      "leak";
  if (each.empty() && !view.log_says(kAlone).empty())
    return {0.8, "`" + std::string(view.log_says(kAlone)) + "` in the log"};
  if (const std::string_view told = view.story().growing; each.empty() && !told.empty())
    return {0.8, "`" + std::string(told) + "` in the log"};
  if (each.empty() || grows.empty()) return {};
  return {0.86, "`" + std::string(each) + "` and `" + std::string(grows) + "` in the log"};
}

bool several_processes(const CaseView& view) {
  return pytorch_on_device(view) && !view.serving() && !view.zero() && !view.fsdp();
}
bool data_parallel(const CaseView& view) { return trained_on_several(view) && !view.zero() && !view.fsdp(); }
Evidence on_the_first_device(const CaseView& view) {
  const std::string log = without_words(view.incident().log_text,
                                        "distributeddataparallel|distributed data parallel|fullyshardeddataparallel");
  const std::string_view word =
      affirmed_word(log, "dataparallel|nn.dataparallel|data_parallel.py|torch.nn.dataparallel");
  if (word.empty()) return {};
  return {0.86, "`" + std::string(word) + "` in the log"};
}
constexpr std::string_view kAnyFirst = "gpu 0|gpu0|gpu:0|0 gpu|gpu #0|cuda:0|first gpu|0号|卡0|gpu 0番|rank 0";
constexpr std::string_view kMore =
    "more than|more memor|get more|gets more|much more|higher|unbalanc|uneven|others|other "
    "gpus|比其他|更多|高很多|多很多|"
    "additional processes|extra processes|集中|多く";
Evidence filled_unlike(const CaseView& view) {
  if (!view.log_says("device_map").empty()) return {};
  std::string_view word = view.log_says(kFirstDevice);
  // "the 0 GPU gets more memory than others"
  if (word.empty())
    each_sentence(beginning(view), [&](std::string_view sentence) {
      const std::string_view first = any_word(sentence, kAnyFirst);
      if (!first.empty() && !any_word(sentence, kMore).empty() && sentence.find("capacity") == std::string_view::npos)
        word = first;
      return !word.empty();
    });
  if (word.empty() || (!several_gpus(view) && view.log_says("gpus|ddp|多卡|卡|gpu0|gpu 0|parallel|0 gpu").empty()))
    return {};
  return {0.85, "`" + std::string(word) + "` in the log"};
}

constexpr Situation kSituations[] = {
    {"shared_with_others",
     "others work on the same device, by the post: what they hold is missing, and changes while this one runs",
     on_device,
     {{log, 0.86,
       "别人也在用|别人在用|其他人在用|其他人也在用|others are using|other people use|other people are using|other "
       "users|"
       "someone else is using|somebody else is using|shared with other|share the gpu|共用一张|共用gpu|他の人が使"}},
     {{"end-other-processes",
       "nvidia-smi: how much do the others hold? Another GPU (CUDA_VISIBLE_DEVICES=<its number>), or later"},
      {"micro-batch"}}},
    {"kept_by_an_earlier_run",
     "the notebook still holds model, optimizer and outputs of the run before, and an exception holds the tensors of "
     "its "
     "frames",
     pytorch_on_device,
     {{log, 0.87, kRunAgain}, {log, 0.85, kOneAfterAnother}},
     {{"empty-cache",
       "between runs: del model, optimizer, outputs; gc.collect(); torch.cuda.empty_cache() (a notebook: restart the "
       "kernel), or a process of its own for each run"},
      {"end-other-processes", "nvidia-smi: end notebooks and runs that still hold the device"},
      {"detach-history", "results as numbers: .item(), .detach().cpu(); no list of models or losses"}}},
    {"held_by_a_dead_run",
     "a process that nvidia-smi does not list, or an earlier run of yours, still holds the device",
     of_an_earlier_run,
     {{log, 0.86, kOfTheDead}},
     {{"end-other-processes",
       "fuser -v /dev/nvidia*, ps aux | grep python: end what is left of earlier runs (kill -9 PID), or another GPU: "
       "CUDA_VISIBLE_DEVICES=1"}},
     left_by_a_run_that_ended},
    {"shared_machine",
     "the machine is shared: programs of others hold a part of the device",
     of_an_earlier_run,
     {{log, 0.8, kSharedMachine}},
     {{"end-other-processes",
       "another GPU: nvidia-smi shows which is free (CUDA_VISIBLE_DEVICES=1), or wait until the others are done"}}},
    {"data_parallel",
     "nn.DataParallel gathers outputs and sums gradients on the first GPU",
     data_parallel,
     {},
     {{"ddp"},
      {"micro-batch"},
      {"eval-accumulation", "the loss computed inside of forward(): only numbers are gathered"}},
     on_the_first_device},
    {"first_device_fuller",
     "every process opens the first GPU too, or loads a checkpoint onto it: each takes a context and a copy there",
     several_processes,
     {},
     {{"map-location",
       "torch.cuda.set_device(local_rank) before anything else in each process; torch.load(..., map_location=\"cpu\")"},
      {"ddp", "DistributedDataParallel instead of DataParallel: the first GPU gathers nothing"},
      {"micro-batch"}},
     filled_unlike},
    {"grows_with_every_request",
     "by the post memory grows from request to request: each may leave graphs without no_grad() or outputs in a list, "
     "or "
     "a longer input came than any before",
     predicting,
     {},
     {{"no-grad", "with torch.inference_mode(): around the prediction"},
      {"empty-cache", "del outputs; torch.cuda.empty_cache() after a request"},
      {"detach-history",
       "results to the host at once: .detach().cpu(), .item(); nothing on the GPU in lists or globals"},
      {"input-size", "a bound on the input: the longest text or largest image decides"}},
     growing_by_request},
};

}  // namespace

std::span<const Situation> rerun_situations() { return kSituations; }

}  // namespace headroom::doctor
