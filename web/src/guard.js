
// Below: the checks that stand before the calls, and what JavaScript expects of an object. The build puts them here.

// Minifiers give classes other names.
const classNames = new Map([/* CLASSES */]);

const guard = {
  /** Before calls that need no object. */
  ready(call) {
    if (wasm === undefined) {
      throw new Error(`${call}: wgrad is not loaded yet. Call and await init(), the default export of the module, first.`);
    }
  },

  /** Before methods of an object. */
  alive(self, Class, call) {
    if (!(self instanceof Class)) {
      const [name, method] = call.split('.');
      throw new TypeError(`${call}: this is ${shown(self)}, not a ${name}. Call it as a method: x.${method}.`);
    }
    if (!self.__wbg_ptr) throw gone(call, classNames.get(Class));
  },

  /** Of more arguments than `names`, the first. */
  most(call, value, names) {
    if (value === undefined) return;
    throw new TypeError(`${call}: ${shown(value)} is one argument too many; it takes (${names}).`);
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

const gone = (call, name) => new TypeError(`${call}: this ${name} was given back by free() or at the end of a \`using\` block. Give it back later, or make another one.`);

const refused = (call, name, value, wanted, how) => new TypeError(
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

// Texts of objects. They never throw, as they stand in other messages.

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

for (const Class of [Tensor, Variable]) {
  const own = classNames.get(Class);
  const name = (self) => (Class === Variable && self.__wbg_ptr ? `Variable '${self.name}'` : own);
  Object.defineProperties(Class.prototype, {
    toString: {
      configurable: true, writable: true,
      value() { return facts(this) ? `${describe(this, name(this))} (values: ${HOW})` : describe(this, own); },
    },
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
        throw new TypeError(`${describe(this, name(this))} is no number: compute with its methods, as in x.mul(2) or x.less(y), or read it with await item().`);
      },
    },
  });
}

/** Other classes by their names, and some with more. */
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

// What a tensor can do, a variable can with its value.

const promising = new Set([/* PROMISING */]);
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
        if (!promising.has(`Tensor.${name}`)) return of(this, (value) => value[name](...given));
        try {
          return of(this, (value) => value[name](...given));
        } catch (error) {
          return Promise.reject(error);
        }
      },
    };
  Object.defineProperty(Variable.prototype, name, { configurable: true, ...forwarded });
}
