'use strict';
// The page of the server: a chat, and the memory that the server has planned. What a model says is text, never markup.
const byId = id => document.getElementById(id);
const element = (name, className, text) => {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
};

// ---- calls

const KEY = 'headroom-api-key';
const here = new URL('.', location.href).pathname.replace(/\/$/, '');

async function ask(path, options = {}) {
  const key = sessionStorage.getItem(KEY);
  const headers = {...options.headers};
  if (key) headers.Authorization = 'Bearer ' + key;
  const answer = await fetch(here + path, {...options, headers, cache: 'no-store', credentials: 'omit'});
  if (answer.status === 401) askForKey();
  if (answer.ok) return answer;
  const body = await answer.json().catch(() => null);
  const message = body && body.error && body.error.message;
  throw new Error(message || 'the server answers with status ' + answer.status);
}

const post = (path, body) => ask(path, {method: 'POST', body: JSON.stringify(body), signal: running.signal,
                                        headers: {'Content-Type': 'application/json'}});

function askForKey() {
  if (!byId('access').hidden) return;
  byId('access').hidden = false;
  byId('key').focus();
}

byId('access').addEventListener('submit', event => {
  event.preventDefault();
  sessionStorage.setItem(KEY, byId('key').value.trim());
  byId('key').value = '';
  byId('access').hidden = true;
  showProblem('');
  clearTimeout(look.timer);
  look();
  byId('text').focus();
});

// The data of each server-sent event.
async function* events(answer) {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let left = '';
  for (;;) {
    const {value, done} = await reader.read();
    if (done) return;
    left += value;
    const lines = left.split('\n');
    left = lines.pop();
    for (const line of lines)
      if (line.startsWith('data:')) yield line.slice(5).trim();
  }
}

// ---- the conversation

const turns = [];
let running = null;  // the AbortController of the answer under way

function showProblem(text) {
  byId('problem').textContent = text;
  byId('problem').hidden = !text;
}

// Text with fenced code as preformatted text.
function show(into, text) {
  const parts = [];
  text.split(/^ {0,3}```[^\n`]*$\n?/m).forEach((part, i) => {
    if (part) parts.push(i % 2 ? element('pre', '', part.replace(/\n$/, '')) : document.createTextNode(part));
  });
  into.replaceChildren(...parts);
}

function addTurn(role, text) {
  byId('empty').hidden = true;
  const article = element('article', role);
  const said = element('div', 'said');
  article.append(element('h2', '', role === 'user' ? 'You' : byId('name').value || 'Model'), said);
  byId('log').append(article);
  show(said, text);
  const turn = {role, text, article, said};
  turns.push(turn);
  article.scrollIntoView({block: 'end'});
  return turn;
}

const isAtEnd = () => byId('log').scrollHeight - byId('log').scrollTop - byId('log').clientHeight < 80;

function number(id) {
  const value = byId(id).value.trim();
  return value === '' ? undefined : Number(value);
}

function bodyOf(text) {
  const body = {stream: true, stream_options: {include_usage: true}};
  if (byId('name').value) body.model = byId('name').value;
  for (const id of ['temperature', 'top_p', 'max_tokens', 'seed'])
    if (number(id) !== undefined) body[id] = number(id);
  if (byId('mode').value === 'text') return {...body, prompt: text};
  const system = byId('system').value.trim();
  const messages = turns.map(({role, text}) => ({role, content: text}));
  return {...body, messages: system ? [{role: 'system', content: system}, ...messages] : messages};
}

async function send(text) {
  const begun = performance.now();
  addTurn('user', text);
  const body = bodyOf(text);
  const turn = addTurn('assistant', '');
  const figures = {begun, first: 0, pieces: 0, tokens: 0, reason: ''};
  if (await run(() => read(turn, figures, body)) === 'stopped') figures.reason = 'stopped';
  finish(turn, figures);
}

// How the work ended: done, stopped, failed.
async function run(work) {
  running = new AbortController();
  setBusy(true);
  try {
    await work();
    return 'done';
  } catch (error) {
    if (error.name === 'AbortError') return 'stopped';
    showProblem(error.message);
    return 'failed';
  } finally {
    running = null;
    setBusy(false);
  }
}

async function read(turn, figures, body) {
  const answer = await post(body.prompt === undefined ? '/v1/chat/completions' : '/v1/completions', body);
  let drawing = 0;
  const draw = () => {
    drawing = 0;
    const follow = isAtEnd();
    show(turn.said, turn.text);
    if (follow) byId('log').scrollTop = byId('log').scrollHeight;
  };
  for await (const data of events(answer)) {
    if (data === '[DONE]') break;
    const json = JSON.parse(data);
    if (json.error) throw new Error(json.error.message || 'the server broke the answer off');
    if (json.usage) figures.tokens = json.usage.completion_tokens;
    const choice = json.choices && json.choices[0];
    if (!choice) continue;
    if (choice.finish_reason) figures.reason = choice.finish_reason;
    const piece = choice.delta ? choice.delta.content : choice.text;
    if (!piece) continue;
    if (!figures.pieces++) figures.first = performance.now();
    turn.text += piece;
    if (!drawing) drawing = requestAnimationFrame(draw);
  }
}

const rateText = rate => rate >= 100 ? String(Math.round(rate)) : rate.toFixed(1);

function finish(turn, figures) {
  const follow = isAtEnd();
  show(turn.said, turn.text);
  if (!turn.text && figures.reason !== 'stopped' && !figures.pieces && !figures.tokens) {
    turn.article.remove();
    turns.splice(turns.indexOf(turn), 1);
    return;
  }
  const count = figures.tokens || figures.pieces, now = performance.now();
  const seconds = (now - figures.begun) / 1000;
  const words = [count + (count === 1 ? ' token in ' : ' tokens in ') + seconds.toFixed(2) + ' s'];
  if (figures.first) words.push('first after ' + Math.round(figures.first - figures.begun) + ' ms');
  if (count) words.push(rateText(count / seconds) + ' tokens/s');
  if (figures.reason) words.push(figures.reason);
  turn.article.append(element('p', 'figures', words.join(' · ')));
  if (follow) byId('log').scrollTop = byId('log').scrollHeight;
}

function setBusy(busy) {
  byId('log').setAttribute('aria-busy', busy);
  byId('send').disabled = busy;
  byId('stop').hidden = !busy;
}

function submit() {
  const text = byId('text').value;
  if (!text.trim() || running) return;
  showProblem('');
  byId('text').value = '';
  (byId('mode').value === 'compare' ? compare : send)(text);
}

byId('composer').addEventListener('submit', event => {
  event.preventDefault();
  submit();
});
byId('text').addEventListener('keydown', event => {
  if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  submit();
});
document.addEventListener('keydown', event => {
  if (event.key === 'Escape' && running) running.abort();
});
byId('stop').addEventListener('click', () => {
  if (running) running.abort();
  byId('text').focus();
});
byId('clear').addEventListener('click', () => {
  if (running) running.abort();
  turns.length = 0;
  byId('log').replaceChildren(byId('empty'));
  byId('empty').hidden = false;
  showProblem('');
  byId('text').focus();
});
byId('mode').addEventListener('change', showMode);
byId('parameters').addEventListener('submit', event => event.preventDefault());

function showMode() {
  const mode = byId('mode').value;
  byId('text').placeholder = {chat: 'Message', text: 'Text to continue', compare: 'Lines to compare'}[mode];
  for (const part of document.querySelectorAll('.drawn')) part.hidden = mode === 'compare';
}

// ---- the server's memory

const COLOURS = {weights: '#0072b2', kv_used: '#d55e00', kv_kept: '#e69f00', kv_free: '#f3d9c4', activations: '#009e73', logits: '#cc79a7',
                 tables: '#56b4e9', server: '#7a68a6', code: '#8d939c', tokenizer: '#b5838d', plan: '#c2b280', page_tables: '#4d6a75', unplanned: '#8882'};
const OTHER = ['#7d5a3c', '#a05195', '#5b8c5a', '#b3555a'];
const NAMES = {kv_used: 'KV cache, in use', kv_kept: 'KV cache, kept prefixes', kv_free: 'KV cache, free', unplanned: 'not planned'};

function bytesText(bytes) {
  let unit = 0;
  for (; bytes >= 1024 && unit < 4; ++unit) bytes /= 1024;
  return (unit === 0 || bytes >= 100 ? Math.round(bytes) : bytes.toPrecision(3)) + ' ' + ['bytes', 'KiB', 'MiB', 'GiB', 'TiB'][unit];
}

// Regions with the KV pool by what its blocks are used for.
function partsOf(arena) {
  const parts = [];
  for (const {name, bytes} of arena.regions) {
    if (name !== 'kv_pool' || !arena.kv_blocks) {
      parts.push({name, bytes});
      continue;
    }
    const block = bytes / arena.kv_blocks, used = arena.kv_blocks_used * block, kept = arena.kv_blocks_kept * block;
    parts.push({name: 'kv_used', bytes: used}, {name: 'kv_kept', bytes: kept}, {name: 'kv_free', bytes: Math.max(0, bytes - used - kept)});
  }
  if (arena.budget_bytes > arena.planned_peak_bytes) parts.push({name: 'unplanned', bytes: arena.budget_bytes - arena.planned_peak_bytes});
  return parts;
}

const pieces = new Map();  // by name: the part of the bar, and the figure beside its name

function addPiece(name) {
  const colour = COLOURS[name] || OTHER[pieces.size % OTHER.length];
  const bar = element('div', name === 'kv_free' ? 'free' : ''), row = element('li'), square = element('i', bar.className), figure = element('span');
  bar.style.backgroundColor = square.style.backgroundColor = colour;
  row.append(square, element('span', '', NAMES[name] || name.replace(/_/g, ' ')), figure);
  byId('arena').append(bar);
  byId('regions').append(row);
  pieces.set(name, {bar, figure});
}

function drawArena(arena) {
  const said = [];
  for (const {name, bytes} of partsOf(arena)) {
    if (!pieces.has(name)) addPiece(name);
    const {bar, figure} = pieces.get(name), text = bytesText(bytes);
    bar.style.flexGrow = bytes;
    bar.title = (NAMES[name] || name) + ' ' + text;
    figure.textContent = text;
    said.push(bar.title);
  }
  byId('arena').setAttribute('aria-label', 'Planned memory: ' + said.join(', '));
  byId('total').textContent = bytesText(arena.planned_peak_bytes) + ' planned of ' + bytesText(arena.budget_bytes) + (arena.disk_bytes ? ', ' + bytesText(arena.disk_bytes) + ' on disk' : '') + '; the process holds ' + bytesText(arena.resident_bytes);
}

const rates = [];
let before = null;

function drawRates(arena) {
  const now = performance.now();
  if (before && now > before.now) {
    rates.push(1000 * Math.max(0, arena.generated_tokens - before.tokens) / (now - before.now));
    if (rates.length > 120) rates.shift();
  }
  before = {now, tokens: arena.generated_tokens};
  const most = Math.max(1, ...rates), recent = rates.slice(-2);
  const rate = recent.reduce((sum, value) => sum + value, 0) / Math.max(1, recent.length);
  byId('rate').textContent = rateText(rate);
  byId('history').firstElementChild.setAttribute('points', rates.map((value, i) => (120 - rates.length + i) + ',' + (29 - 27 * value / most).toFixed(1)).join(' '));
  byId('running').textContent = arena.running;
  byId('waiting').textContent = arena.waiting;
  byId('cache').textContent = (arena.kv_blocks ? 100 * arena.kv_blocks_used / arena.kv_blocks : 0).toFixed(0) + ' %';
}

function setState(kind, text) {
  byId('state').className = 'state ' + kind;
  if (byId('state').lastElementChild.textContent !== text) byId('state').lastElementChild.textContent = text;
}

let known = '';  // the models that the page has been told of

function meet(arena) {
  const names = arena.models;
  if (known === names.join('\n')) return;
  const first = !known, chosen = byId('name').value;
  known = names.join('\n');
  byId('name').replaceChildren(...names.map(name => element('option', '', name)));
  if (names.includes(chosen)) byId('name').value = chosen;
  for (const part of document.querySelectorAll('.named')) part.hidden = names.length < 2;
  byId('model').textContent = names[0];
  document.title = names[0] + ' · headroom';
  if (!first) return;
  byId('mode').value = !arena.makes_text ? 'compare' : arena.chat_template ? 'chat' : 'text';
  if (!arena.makes_text)
    for (const option of byId('mode').options) option.disabled = option.value !== 'compare';
  const why = !arena.makes_text ? 'This model makes embeddings: give some lines, and see how similar they are.'
              : arena.chat_template ? 'Ask something.' : 'This model has no chat template: each text is continued on its own.';
  byId('empty').textContent = why + ' Nothing is kept here beyond this page.';
  showMode();
}

async function look() {
  let pause = 500;
  try {
    const arena = await (await ask('/arena')).json();
    setState(arena.state === 'ready' ? 'good' : '', arena.state);
    if (arena.state === 'ready') meet(arena);
    drawArena(arena);
    drawRates(arena);
  } catch (error) {
    const locked = !byId('access').hidden;
    setState('bad', locked ? 'needs an API key' : 'no answer');
    before = null;
    if (locked) return;
    pause = 2000;
  }
  look.timer = setTimeout(look, document.hidden ? 4000 : pause);
}

function begin() {
  if (matchMedia('(max-width: 46rem)').matches) byId('memory').open = false;
  showMode();
  look();
}
