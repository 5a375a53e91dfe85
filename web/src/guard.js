
// Below: the checks before calls, and the string conversions and properties that JavaScript expects of objects. The build
// inserts them here.

// Minifiers rename classes.
const classNames = new Map([/* CLASSES */]);

const guard = {
  /** Checks calls that need no object. */
  ready(call) {
    if (wasm === undefined) {
      throw new Error(`${call}: wgrad is not loaded yet. Call and await init(), the default export of the module, first.`);
    }
  },

  /** Checks methods of an object. */
  alive(self, Class, call) {
    if (!(self instanceof Class)) {
      const [name, method] = call.split('.');
      throw refusal(`${call}: this is ${shown(self)}, not a ${name}. Call it as a method: x.${method}.`);
    }
    if (!self.__wbg_ptr) throw gone(call, classNames.get(Class));
  },

  /** Refuses the first argument beyond `names`. */
  most(call, value, names) {
    if (value === undefined) return;
    throw refusal(`${call}: ${shown(value)} is one argument too many; it takes (${names}).`);
  },

  number(call, name, value, optional) {
    if (typeof value === 'number' || (optional && missing(value))) return;
    throw refused(call, name, value, 'a number');
  },

  whole(call, name, value, optional) {
    if (Number.isSafeInteger(value) || (optional && missing(value))) return;
    throw refused(call, name, value, 'a whole number');
  },

  count(call, name, value, optional) {
    if ((Number.isSafeInteger(value) && value >= 0) || (optional && missing(value))) return;
    throw refused(call, name, value, 'a whole number from 0');
  },

  boolean(call, name, value, optional) {
    if (typeof value === 'boolean' || (optional && missing(value))) return;
    throw refused(call, name, value, 'true or false');
  },

  string(call, name, value, optional) {
    if (typeof value === 'string' || (optional && missing(value))) return;
    throw refused(call, name, value, 'a string');
  },

  operand(call, name, value, optional) {
    if (typeof value === 'number' || typeof value === 'boolean' || (optional && missing(value))) return;
    if (!(value instanceof Tensor || value instanceof Variable)) {
      throw refused(call, name, value, 'a Tensor, a Variable or a number', Array.isArray(value) && '; Tensor.from(...) makes a tensor of it');
    }
    if (!value.__wbg_ptr) throw gone(`${call}: ${name}`, classNames.get(value.constructor));
  },

  array(call, name, value, optional) {
    if (optional && missing(value)) return;
    if (!(value instanceof Tensor || value instanceof Variable)) {
      const how = (Array.isArray(value) || typeof value === 'number') && '; Tensor.from(...) makes a Tensor of it';
      throw refused(call, name, value, 'a Tensor or a Variable', how);
    }
    if (!value.__wbg_ptr) throw gone(`${call}: ${name}`, classNames.get(value.constructor));
  },

  bytes(call, name, value, optional) {
    if (value instanceof Uint8Array || (optional && missing(value))) return;
    throw refused(call, name, value, 'a Uint8Array', value instanceof ArrayBuffer && '; new Uint8Array(...) makes one of it');
  },

  callback(call, name, value, optional) {
    if (typeof value === 'function' || (optional && missing(value))) return;
    throw refused(call, name, value, 'a function');
  },

  instance(call, name, value, optional, Class) {
    if (optional && missing(value)) return;
    if (!(value instanceof Class)) {
      let how = Class === Tensor && (Array.isArray(value) || ArrayBuffer.isView(value)) && '; Tensor.from(...) makes one of it';
      if (Class === Tensor && value instanceof Variable) how = '; its method read() gives one';
      throw refused(call, name, value, `a ${classNames.get(Class)}`, how);
    }
    if (!value.__wbg_ptr) throw gone(`${call}: ${name}`, classNames.get(Class));
  },
};

const missing = (value) => value === undefined || value === null;

/** The errors made here. */
const refusals = new WeakSet();
const refusal = (text) => {
  const error = new TypeError(text);
  refusals.add(error);
  return error;
};

const gone = (call, name) => refusal(`${call}: this ${name} was given back by free() or at the end of a \`using\` block. Give it back later, or make another one.`);

const refused = (call, name, value, wanted, how) => refusal(
  `${call}: ${name} is ${value === undefined ? 'missing' : shown(value)}; it must be ${wanted}${how || ''}.`,
);

/** How a value looks in a message. */
function shown(value) {
  if (typeof value === 'function') return classNames.has(value) ? `the class ${classNames.get(value)}` : 'a function';
  if (typeof value === 'string') return JSON.stringify(value.length > 60 ? `${value.slice(0, 60)}...` : value);
  if (typeof value !== 'object' || value === null) return typeof value === 'bigint' ? `${value}n` : String(value);
  if (value instanceof Promise) return 'a promise; await it first';
  const constructor = Object.getPrototypeOf(value)?.constructor;
  const name = classNames.get(constructor) ?? constructor?.name ?? 'object';
  if (ArrayBuffer.isView(value)) return `a ${name} of ${value.length ?? value.byteLength}`;
  if (!['Array', 'Object', 'object'].includes(name)) return /^[AEIOU]/.test(name) ? `an ${name}` : `a ${name}`;
  let text;
  try {
    text = JSON.stringify(value);
  } catch {
    return name === 'Array' ? 'a list' : 'an object';
  }
  return text.length > 60 ? `${text.slice(0, 60)}...` : text;
}

// String conversions of objects. They never throw, as messages include them.

const facts = (self) => {
  try {
    return self.__wbg_ptr ? { dtype: self.dtype, shape: self.shape } : undefined;
  } catch {
    return undefined; // disposed of
  }
};
const describe = (self, name) => {
  const found = facts(self);
  return found ? `${name} ${found.dtype} [${found.shape.join(', ')}]` : `${name} that was disposed of`;
};
const HOW = 'await data()';
const INSPECT = Symbol.for('nodejs.util.inspect.custom');

for (const Class of [Tensor, Variable]) {
  const own = classNames.get(Class);
  const name = (self) => (Class === Variable && self.__wbg_ptr ? `Variable '${self.name}'` : own);
  Object.defineProperties(Class.prototype, {
    toString: {
      configurable: true, writable: true,
      value() { return facts(this) ? `${describe(this, name(this))} (values: ${HOW})` : describe(this, own); },
    },
    [INSPECT]: { configurable: true, writable: true, value() { return this.toString(); } },
    toJSON: {
      configurable: true, writable: true,
      value() {
        const named = Class === Variable && this.__wbg_ptr ? { name: this.name } : {};
        const found = facts(this);
        return found ? { type: own, ...named, ...found, values: HOW } : { type: own, disposed: true };
      },
    },
    [Symbol.toPrimitive]: {
      configurable: true, writable: true,
      value(hint) {
        if (hint !== 'number') return this.toString();
        throw new TypeError(`${describe(this, name(this))} is not a number: compute with its methods, as in x.mul(2) or x.less(y), or read it with await item().`);
      },
    },
  });
}

// A browser's console shows an object's own properties and calls no getters.
const wrap = Tensor.__wrap;
Tensor.__wrap = (pointer) => {
  const tensor = wrap(pointer);
  return Object.defineProperty(tensor, 'text', { enumerable: true, value: tensor._text() });
};

/** Other classes convert to their names, and some to more. */
const texts = new Map([
  [Device, (self) => `Device ${self.adapter.text}`],
  [Images, (self) => `Images (${self.length})`],
  [Sequential, (self) => `Sequential (${self.layerNames.join(', ')})`],
]);
const jsons = new Map([
  [Device, (self) => ({ type: 'Device', adapter: self.adapter, features: self.features, limits: self.limits })],
  [Images, (self) => ({ type: 'Images', length: self.length })],
]);
for (const [Class, name] of classNames) {
  const define = (key, value) => Object.hasOwn(Class.prototype, key)
    || Object.defineProperty(Class.prototype, key, { configurable: true, writable: true, value });
  define('toString', function toString() {
    return this.__wbg_ptr ? texts.get(Class)?.(this) ?? name : `${name} that was given back`;
  });
  if (jsons.has(Class)) {
    define('toJSON', function toJSON() {
      return this.__wbg_ptr ? jsons.get(Class)(this) : { type: name, disposed: true };
    });
  }
}

// A variable has the methods of a tensor, applied to its value.

const promising = new Set([/* PROMISING */]);
/** Methods before the wrapping that traces their errors, see below. */
const untraced = new WeakMap();
const plain = (call) => untraced.get(call) ?? call;
const OWN = new Set(['constructor', 'free', 'dispose', 'toString', 'toJSON']);
for (const [name, property] of Object.entries(Object.getOwnPropertyDescriptors(Tensor.prototype))) {
  if (OWN.has(name) || name.startsWith('_') || Object.hasOwn(Variable.prototype, name)) continue;
  const of = (self, act) => {
    guard.alive(self, Variable, `Variable.${name}`);
    const value = self.read();
    try {
      return act(value);
    } finally {
      value.dispose();
    }
  };
  const forwarded = property.get
    ? { get() { return of(this, (value) => value[name]); } }
    : {
      writable: true,
      value(...given) {
        const call = (value) => plain(value[name]).apply(value, given);
        if (!promising.has(`Tensor.${name}`)) return of(this, call);
        try {
          return of(this, call);
        } catch (error) {
          return Promise.reject(error);
        }
      },
    };
  Object.defineProperty(Variable.prototype, name, { configurable: true, ...forwarded });
}

// Error stacks begin at the program's call, not within the library.

/** Errors whose stacks are already corrected: a callback's error may pass through a second call. */
const traces = new WeakSet();

/** Whether the library made the error; errors of the program's own functions stay unchanged. */
const own = (error) => error instanceof Error && !traces.has(error) && (refusals.has(error) || /^.*\n?.*(__wbg_|wasm)/.test(error.stack ?? ''));

/** An error with the stack of the caller of `call`, which may have returned long ago; `at` was recorded there. */
function seen(error, call, at) {
  if (!own(error) || !Error.captureStackTrace) return error;
  traces.add(error);
  if (at) error.stack = String(at.stack).replace(/^.*/, () => String(error));
  else Error.captureStackTrace(error, call);
  return error;
}

function traced(call, promises) {
  const outer = function (...given) {
    let at;
    try {
      if (!promises) return call.apply(this, given);
      at = {};
      Error.captureStackTrace?.(at, outer);
      return call.apply(this, given).catch((error) => { throw seen(error, outer, at); });
    } catch (error) {
      throw seen(error, outer);
    }
  };
  untraced.set(outer, call);
  return Object.defineProperties(outer, { name: { value: call.name, configurable: true }, length: { value: call.length, configurable: true } });
}

for (const [Class, name] of classNames) {
  for (const object of [Class, Class.prototype]) {
    for (const [key, property] of Object.entries(Object.getOwnPropertyDescriptors(object))) {
      if (typeof property.value !== 'function' || key.startsWith('_') || ['constructor', 'free', 'dispose', 'prototype'].includes(key)) continue;
      const promises = promising.has(`${name}.${key}`) || (Class === Variable && promising.has(`Tensor.${key}`));
      Object.defineProperty(object, key, { ...property, value: traced(property.value, promises) });
    }
  }
}
